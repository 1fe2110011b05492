//! Instructions for the model: those of the upstreams, each under its name.

use outlive::server::catalog::Call;

use crate::{
    assemble::catalog_of,
    member::Member,
    own_tools::{self, UPSTREAM_PROBLEMS},
    settings::{Pin, Upstream},
    shared::Shared,
};

/// Bytes of the instructions of all upstreams.
const MAX_BYTES: usize = 32 << 10;

/// Returns the instructions of the upstreams that the caller may see.
pub(crate) fn instructions(shared: &Shared, call: &Call) -> Option<String> {
    let config = shared.config();
    let may_see = |member: &Member| own_tools::may_see(call.principal(), member);
    let mut parts = Vec::new();
    let mut bytes = 0;
    for member in config.members.iter().filter(|member| may_see(member)) {
        let Some(part) = of_member(shared, call, member) else { continue };
        bytes += part.len();
        if bytes <= MAX_BYTES {
            parts.push(part);
        }
    }
    if config.settings.report_problems && !own_tools::problems(shared, call.principal()).is_empty()
    {
        parts.push(format!(
            "Some servers behind this one cannot be used now; call `{UPSTREAM_PROBLEMS}` for the \
             reasons."
        ));
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn of_member(shared: &Shared, call: &Call, member: &Member) -> Option<String> {
    let settings = member.settings();
    let is_denied = settings.pin == Pin::Deny && member.pins.has_changed_instructions();
    if !settings.instructions || is_denied {
        return None;
    }
    let key = shared.view_key(call);
    let own = member.catalogs.get(&catalog_of(&settings, &key));
    let others = || member.catalogs.largest().filter(|_| !settings.has_user_credentials());
    let lists = own.or_else(others)?;
    let text = outlive::text::lines(lists.instructions.as_deref()?).into_owned();
    Some(format!("{}\n{}", heading(&settings), text.trim()))
}

fn heading(settings: &Upstream) -> String {
    let name = settings.name();
    match settings.shown_prefix() {
        "" => format!("Instructions of the server `{name}`:"),
        prefix => format!("Instructions of the server `{name}` (tools `{prefix}__*`):"),
    }
}
