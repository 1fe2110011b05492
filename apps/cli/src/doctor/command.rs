//! The command `outlive doctor`.

use super::finding::{Finding, Level};
use super::plan::Plan;
use super::{auth, files, folder, machine, port, store};
use crate::{
    checks::{self},
    error::{CliError, Kind, Result},
    print::{self, Paint, paint},
    store::{block_on, own_url, plain},
};
use serde::Serialize;
use std::{io, path::PathBuf, process::ExitCode};

/// Checks what this program needs, and says what to do.
///
/// Looks at the data folder, the store, the port, files with tokens and keys, issuers of tokens, the clock, and the
/// terminal. It writes and forgets a note in the store and a file in the data folder; nothing else is changed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
pub(super)   outlive doctor
  outlive doctor tools.toml --listen 0.0.0.0:8000 --token-file callers.txt
  outlive doctor --store postgres://outlive@db/outlive
  outlive doctor --json | jq -r '.findings[] | select(.level == \"failure\") | .remedy'

Exit codes: 0 nothing keeps the program from working, 1 something does.
With --json it is one JSON object.")]
pub(crate) struct Args {
    /// The file with the tools; ./outlive.toml if it is there
    pub(super) file: Option<PathBuf>,
    /// Where tasks are kept: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", env = "OUTLIVE_STORE", hide_env_values = true)]
    pub(super) store: Option<String>,
    /// Where a server is to listen
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<String>,
    /// The data folder
    #[arg(long, value_name = "FOLDER")]
    pub(super) data_dir: Option<PathBuf>,
    /// The file with the tokens of callers
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,
    /// The file with the keys that seal what clients carry
    #[arg(long, value_name = "FILE")]
    pub(super) key_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

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
    findings.extend(block_on(async {
        let mut findings = match plan.store.clone().map_or_else(|| own_url(&plan.data), Ok) {
            Ok(url) => {
                let mut findings = store::check(&url).await;
                findings.extend(checks::store_file(&url).map(Finding::from));
                findings
            }
            Err(several) => {
                vec![Finding::warning("store", several.to_string(), "name one: --store URL")]
            }
        };
        findings.push(port::check(&plan.listen).await);
        let config = plan.config();
        findings.extend(plan.reach().map(Finding::from));
        if let Some(auth) = config.and_then(|config| config.auth.as_ref()) {
            findings.extend(auth::check(auth).await);
        }
        Ok(findings)
    })?);
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
        // Colours are left out by themselves where nobody sees them.
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
