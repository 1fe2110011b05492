//! Notices logins of the gateway that operators make or end, and requests of principals whose tasks
//! wait for a token.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use http::Method;
use outlive::{
    auth::client::{LoginInfo, OAuth, Tokens},
    client::transport::TokenRequest,
};

use crate::{
    credentials::needs_login,
    member::Member,
    refresh,
    settings::{AuthKind, Upstream},
    shared::{Config, Shared},
    status::{Problem, State},
};

/// Interval in which upstreams that need a login are checked for one.
const INTERVAL: Duration = Duration::from_secs(2);

/// Interval in which the store is checked for tasks of an active principal.
const PRINCIPAL_INTERVAL: Duration = Duration::from_secs(5);

/// Principals that are checked at once.
const MAX_PRINCIPALS: usize = 64;

/// Logins by the name of their upstream, as they were last observed; empty without a login.
type Observed = HashMap<Arc<str>, String>;

/// Shows which upstreams need a login, from the start on, until the gateway ends.
pub(crate) async fn watch(shared: Weak<Shared>) {
    let mut observed = Observed::new();
    loop {
        {
            let Some(shared) = shared.upgrade() else { return };
            let config = shared.config();
            for member in &config.members {
                check(&shared, member, &mut observed).await;
            }
            renew_requested(&shared, &config).await;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Compares the state of an upstream with the stored login.
async fn check(shared: &Shared, member: &Member, observed: &mut Observed) {
    let (state, settings) = (member.state(), member.settings());
    let is_missing = state.state() == State::NeedsLogin;
    // The next connection notices the end of a login.
    let is_new = state.state() == State::Idle && !observed.contains_key(&settings.name);
    if !is_missing && !is_new {
        return;
    }
    let Some((client, problem)) = login(shared, member) else { return };
    // A failing store changes nothing.
    let Ok(login) = client.login_info().await else { return };
    let login = login.as_ref().map(fingerprint).unwrap_or_default();
    let before = observed.insert(Arc::clone(&settings.name), login.clone());
    if is_new && login.is_empty() {
        state.failed(problem);
    } else if is_missing && !login.is_empty() && before.is_some_and(|before| before != login) {
        member.runtime.retry_now();
        refresh::notify(shared);
    }
}

/// Returns the members of a login that differ from those of the next one.
fn fingerprint(login: &LoginInfo) -> String {
    format!("{} {} {:?} {:?}", login.issuer, login.client_id, login.scopes, login.expires)
}

/// Exchanges the tokens of principals with a new request, if one of their tasks waits for that. The task
/// may run on another replica, and finds its token in the store.
async fn renew_requested(shared: &Shared, config: &Config) {
    let Some(delegates) = shared.credentials.delegates() else { return };
    let upstreams: Vec<_> = config.members.iter().map(|member| member.settings()).collect();
    let exchanges = |settings: &&Arc<Upstream>| {
        settings.oauth().is_some_and(|auth| matches!(auth.kind, AuthKind::Exchange(_)))
    };
    if !upstreams.iter().any(|settings| exchanges(&settings)) {
        return;
    }
    for principal in delegates.take_active(PRINCIPAL_INTERVAL, MAX_PRINCIPALS) {
        for settings in upstreams.iter().filter(exchanges) {
            if !shared.credentials.is_requested(&settings.name, principal.key()).await {
                continue;
            }
            let Some(auth) = settings.oauth() else { continue };
            let source = shared.credentials.source(settings, auth, Some(principal.key()));
            let Ok(source) = source else { continue };
            let url = settings.address().unwrap_or_default();
            let request = TokenRequest::new(&Method::POST, url);
            match Tokens::new(source).token(&request).await {
                Ok(_) => shared.credentials.end_request(&settings.name, principal.key()).await,
                Err(error) => {
                    tracing::debug!(%error, upstream = &*settings.name, "no token for a task");
                }
            }
        }
    }
}

/// Returns the client of an upstream with a login of the gateway, and the problem of a missing login.
fn login(shared: &Shared, member: &Member) -> Option<(OAuth, Problem)> {
    let settings = member.settings();
    let auth = settings.oauth().filter(|auth| auth.kind == AuthKind::Login)?;
    let client = shared.credentials.source(&settings, auth, None).ok()?;
    Some((client, needs_login(&settings, auth)))
}
