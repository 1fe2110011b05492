//! Checks for missing programs, folders and values of upstreams. Connects to none.

use std::path::Path;

use super::{Check, Level, tools::is_there};
use crate::serve::{
    Sources, base_of,
    config::{CommandTarget, Config, UpstreamTarget},
};

const UPSTREAM: &str = "upstream";

/// Checks that each upstream of a file can be started.
pub(crate) fn upstreams(config: &Config, file: Option<&Path>) -> Vec<Check> {
    let misconfigured = Sources::new(file).misconfigured(config);
    let mut checks = Vec::new();
    for (name, reason) in &misconfigured {
        let (what, remedy) =
            reason.split_once("; ").unwrap_or((reason.as_str(), "correct the file"));
        checks.push(Check::new(
            UPSTREAM,
            Level::Broken,
            format!("upstream `{name}`: {what}"),
            remedy,
        ));
    }
    let base = base_of(file);
    for upstream in &config.upstreams {
        let UpstreamTarget::Command(target) = &upstream.target else { continue };
        let is_known = misconfigured.iter().any(|(name, _)| *name == upstream.name);
        if let (false, Some(program)) = (is_known, missing(target, &base)) {
            let what =
                format!("upstream `{}` runs `{program}`, which was not found", upstream.name);
            let remedy = "install the program, or write its full path";
            checks.push(Check::new(UPSTREAM, Level::Broken, what, remedy));
        }
    }
    checks
}

/// Returns the program of a command if it does not exist.
fn missing<'t>(target: &'t CommandTarget, base: &Path) -> Option<&'t str> {
    let folder = target.folder.as_ref().map_or_else(|| base.to_owned(), |folder| base.join(folder));
    target.words.first().map(String::as_str).filter(|program| !is_there(program, &folder))
}
