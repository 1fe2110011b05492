//! The command `outlive doctor`.

use super::args::Args;
use super::finding::{Finding, Level};
use super::plan::Plan;
use super::{auth, files, folder, machine, port, store, upstreams};
use crate::{
    checks::{self},
    error::{CliError, Kind, Result},
    print::{self, Paint, paint},
    runtime::block_on,
    store::{own_url, plain},
};
use serde::Serialize;
use std::{io, process::ExitCode};

#[derive(Serialize)]
pub(super) struct Report<'a> {
    healthy: bool,
    findings: &'a [Finding],
}

pub(crate) fn run(args: Args) -> Result<ExitCode> {
    let began = machine::Began::now();
    let plan = Plan::of(args)?;
    let mut findings = folder::check(&plan.data);
    findings.extend(files::check(&plan));
    findings.extend(block_on(Box::pin(async {
        let mut findings = match plan.store.clone().map_or_else(|| own_url(&plan.data), Ok) {
            Ok(url) => {
                let mut findings = store::check(&url).await;
                findings.extend(checks::store_file(&url).map(Finding::from));
                findings
            }
            Err(several) => {
                vec![Finding::warning("store", several.to_string(), "choose one with --store URL")]
            }
        };
        findings.push(port::check(&plan.listen).await);
        let config = plan.config();
        findings.extend(plan.reach().map(Finding::from));
        if let Some(auth) = config.and_then(|config| config.auth.as_ref()) {
            findings.extend(auth::check(auth).await);
        }
        if let Some((file, Ok(config))) = &plan.file {
            findings.extend(upstreams::check(config, file, &plan.place()).await);
        }
        Ok(findings)
    }))?);
    findings.extend(machine::check(&began));
    let healthy = findings.iter().all(|finding| finding.level != Level::Failure);
    say(&findings, healthy, plan.json)?;
    Ok(if healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(super) fn say(findings: &[Finding], healthy: bool, json: bool) -> Result<()> {
    let mut lines = Vec::new();
    let failed = |error: &dyn std::fmt::Display| CliError::new(Kind::Failed, error);
    if json {
        let report = Report { healthy, findings };
        lines.push(serde_json::to_string(&report).map_err(|error| failed(&error))?);
    }
    for Finding { check, level, what, remedy } in findings.iter().filter(|_| !json) {
        // `console` omits colors if the output is not a terminal.
        let word = match level {
            Level::Ok => paint(Paint::Green, "ok     "),
            Level::Warning => paint(Paint::Yellow, "warning"),
            Level::Failure => paint(Paint::Red, "FAILURE"),
        };
        lines.push(format!("{word}  {check:10}  {}", plain(what)));
        lines.extend(remedy.as_ref().map(|it| format!("{:21}try: {}", "", plain(it))));
    }
    match print::page(&lines.join("\n")) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(failed(&error)),
        _ => Ok(()),
    }
}
