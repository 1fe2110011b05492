//! Checks outlive.toml, the tokens of callers, and the seal keys.

use std::path::Path;

use super::{Finding, Plan};
use crate::{
    checks, print,
    serve::{
        self,
        config::{Config, Mistake, Mistakes},
    },
};

const FILE: &str = "file";

pub(super) fn check(plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    match &plan.file {
        Some((file, config)) => {
            findings.extend(tools(file, config.as_ref()));
            let token_file = plan.token_file.as_deref();
            let people = config.iter().flat_map(|config| checks::people(config, token_file));
            findings.extend(people.map(Finding::from));
        }
        None => {
            findings.push(Finding::ok(FILE, "no outlive.toml here; `outlive serve` serves a demo"))
        }
    }
    if let Some(file) = &plan.token_file {
        findings.push(checks::tokens(file).into());
    }
    let own = plan.data.join("seal.key");
    match (&plan.key_file, own.exists()) {
        (Some(file), _) => findings.push(checks::keys(file).into()),
        (None, true) => findings.push(checks::keys(&own).into()),
        (None, false) => {}
    }
    findings
}

/// Checks the file with the tools, and that their programs exist.
fn tools(file: &Path, config: Result<&Config, &Mistakes>) -> Vec<Finding> {
    let config = match config {
        Ok(config) => config,
        Err(Mistakes(mistakes)) => {
            let failure = |Mistake { what, remedy }: &Mistake| {
                let remedy = remedy.as_deref().unwrap_or("correct the line that is named");
                Finding::failure(FILE, what, remedy)
            };
            return mistakes.iter().map(failure).collect();
        }
    };
    let mut parts = vec![print::count(config.tools.len(), "tool")];
    if !config.upstreams.is_empty() {
        parts.push(print::count(config.upstreams.len(), "upstream"));
    }
    if !config.workers.is_empty() {
        parts.push(print::count(config.workers.len(), "tool worker"));
    }
    let mut findings =
        vec![Finding::ok(FILE, format!("{} has {}", file.display(), parts.join(" and ")))];
    let warning = |Mistake { what, remedy }: &Mistake| {
        Finding::warning(FILE, what, remedy.as_deref().unwrap_or("correct the line that is named"))
    };
    findings.extend(config.warnings.iter().map(warning));
    let base = serve::base_of(Some(file));
    findings.extend(checks::tools(&config.tools, &base).into_iter().map(Finding::from));
    findings.extend(checks::upstreams(config, Some(file)).into_iter().map(Finding::from));
    findings.extend(checks::workers(config, &base).into_iter().map(Finding::from));
    let skills = config.server.skills.as_ref().map(|folder| checks::skills(&base.join(folder)));
    findings.extend(skills.map(Finding::from));
    findings
}
