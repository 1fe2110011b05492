//! `outlive doctor`: checks what the program needs, and says what to do.
//!
//! - `folder`: the data folder, and sockets in it. `store`: where tasks are kept. `port`: where is
//!   listened. `files`: outlive.toml, tokens, keys. `auth`: issuers of tokens. `machine`: clock, locale, terminal.

mod auth;
mod files;
mod folder;
mod machine;
mod port;
mod store;

use std::{io, path::PathBuf, process::ExitCode};

use serde::Serialize;

use crate::{
    checks::{self, Check},
    error::{CliError, Kind, Result},
    paths,
    print::{self, Paint, paint},
    serve::config::{self, Config, Mistakes},
    store::{block_on, own_url, plain},
};

/// Checks what this program needs, and says what to do.
///
/// Looks at the data folder, the store, the port, files with tokens and keys, issuers of tokens, the clock, and the
/// terminal. It writes and forgets a note in the store and a file in the data folder; nothing else is changed.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive doctor
  outlive doctor tools.toml --listen 0.0.0.0:8000 --token-file callers.txt
  outlive doctor --store postgres://outlive@db/outlive
  outlive doctor --json | jq -r '.findings[] | select(.level == \"failure\") | .remedy'

Exit codes: 0 nothing keeps the program from working, 1 something does.
With --json it is one JSON object.")]
pub(crate) struct Args {
    /// The file with the tools; ./outlive.toml if it is there
    file: Option<PathBuf>,
    /// Where tasks are kept: sqlite:FILE or postgres://…
    #[arg(long, value_name = "URL", env = "OUTLIVE_STORE", hide_env_values = true)]
    store: Option<String>,
    /// Where a server is to listen
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// The data folder
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// The file with the tokens of callers
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The file with the keys that seal what clients carry
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found about one thing.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    check: &'static str,
    level: Level,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    Warning,
    Failure,
}

impl Finding {
    fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, what: what.into(), remedy: None }
    }

    fn warning(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Warning, what: what.into(), remedy: Some(remedy.into()) }
    }

    fn failure(check: &'static str, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, level: Level::Failure, what: what.into(), remedy: Some(remedy.into()) }
    }
}

impl From<Check> for Finding {
    fn from(Check { topic, level, what, remedy }: Check) -> Self {
        let level = match level {
            checks::Level::Ok => Level::Ok,
            checks::Level::Warning => Level::Warning,
            checks::Level::Broken | checks::Level::Refused => Level::Failure,
        };
        Self { check: topic, level, what, remedy }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    healthy: bool,
    findings: &'a [Finding],
}

/// What `outlive serve` would use: what the command line says, then the file, then the defaults.
struct Plan {
    file: Option<(PathBuf, Result<Config, Mistakes>)>,
    data: PathBuf,
    store: Option<String>,
    listen: String,
    token_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    json: bool,
}

impl Plan {
    fn of(args: Args) -> Result<Self> {
        let here = || Some(PathBuf::from("outlive.toml")).filter(|file| file.exists());
        let file = args.file.or_else(here);
        let data = match (args.data_dir, &file) {
            (Some(data), _) => data,
            (None, Some(file)) if file.exists() => paths::of_server(Some(file))?,
            (None, _) => paths::of_server(None)?,
        };
        let file = file.map(|file| {
            let config = config::load(&file);
            (file, config)
        });
        let config = file.as_ref().and_then(|(_, config)| config.as_ref().ok());
        let server = config.map(|config| &config.server);
        Ok(Self {
            data,
            store: args.store.or_else(|| config.and_then(|config| config.tasks.store.clone())),
            listen: args
                .listen
                .or_else(|| server.map(|server| server.listen.clone()))
                .unwrap_or_else(|| config::LISTEN.to_owned()),
            token_file: args
                .token_file
                .or_else(|| server.and_then(|server| server.token_file.clone())),
            key_file: args
                .key_file
                .or_else(|| server.and_then(|server| server.seal_key_file.clone())),
            json: args.json,
            file,
        })
    }
}

impl Plan {
    /// What the file says, if it can be served.
    fn config(&self) -> Option<&Config> {
        self.file.as_ref().and_then(|(_, config)| config.as_ref().ok())
    }

    /// Whether others can reach the server without a token.
    fn reach(&self) -> Option<Check> {
        let demo;
        let config = match &self.file {
            Some(_) => self.config()?,
            None => {
                demo = config::demo();
                &demo
            }
        };
        let knows_callers = self.token_file.is_some() || config.auth.is_some();
        checks::reach(&config.server, &self.listen, knows_callers)
    }
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

fn say(findings: &[Finding], healthy: bool, json: bool) -> Result<()> {
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
