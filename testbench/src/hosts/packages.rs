//! The client packages, and the processes that drive them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use xtask::process;

use crate::conformance::suite::{self, Suite};
use crate::python;

/// A client package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Package {
    TypeScript1,
    TypeScript2,
    AiSdk,
    Python1,
    Python2,
}

impl Package {
    /// Name and version, as in the lock files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TypeScript1 => "TypeScript 1.32.2",
            Self::TypeScript2 => "TypeScript 2.4.0",
            Self::AiSdk => "ai-sdk 2.0.97",
            Self::Python1 => "Python 1.30.0",
            Self::Python2 => "Python 2.3.0",
        }
    }

    /// The script in `conformance/hosts`.
    fn script(self) -> &'static str {
        match self {
            Self::TypeScript1 => "ts1.mjs",
            Self::TypeScript2 => "ts2.mjs",
            Self::AiSdk => "ai.mjs",
            Self::Python1 => "py1.py",
            Self::Python2 => "py2.py",
        }
    }
}

/// The calls of one process, read by `conformance/hosts/model.{mjs,py}`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Plan {
    pub(super) url: String,
    /// The command of a server on stdio.
    pub(super) command: Vec<String>,
    /// The name of the host, as in `clientInfo`.
    pub(super) host: &'static str,
    pub(super) timeout_ms: u128,
    /// Whether progress extends the timeout.
    pub(super) progress: bool,
    /// Time between the starts of two runs.
    pub(super) stagger_ms: u64,
    /// Calls after which a run ends without a result.
    pub(super) max_calls: usize,
    pub(super) runs: Vec<Run>,
}

/// One call of the tool, and the calls that follow from its result.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    pub(super) key: String,
    pub(super) tool: &'static str,
    pub(super) arguments: serde_json::Value,
    /// The part of a pending result that the model sees: `text` or `structured`.
    pub(super) reads: &'static str,
    /// `http` or `stdio`.
    pub(super) transport: &'static str,
}

/// The outcome of a run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) key: String,
    /// Tool calls of the model.
    pub(super) calls: usize,
    /// Turns of the model.
    pub(super) turns: usize,
    /// Bytes of the texts of pending results.
    pub(super) bytes: usize,
    /// Bytes of the structured content of pending results.
    pub(super) structured_bytes: usize,
    pub(super) text: Option<String>,
    pub(super) error: Option<String>,
}

/// The installed packages.
#[derive(Debug)]
pub(super) struct Packages {
    node: PathBuf,
    scripts: PathBuf,
    python1: PathBuf,
    python2: PathBuf,
    fastmcp: PathBuf,
}

impl Packages {
    /// Installs the packages of the lock files, unless they are installed. `program` is in the
    /// target folder, which has the Python environments.
    pub(super) fn install(program: &Path) -> Result<Self> {
        let conformance = process::root().join("conformance");
        // The node version of the suite is new enough for these clients.
        let node = Suite::ready(&conformance)?.node().to_owned();
        let scripts = conformance.join("hosts");
        suite::install_once(&scripts, suite::EXACTLY)?;
        let environments = python::environments(program)?;
        let python = |list: &str| python::with(&conformance.join(list), &environments);
        let python1 = python("hosts/requirements-mcp-1.txt")?;
        let python2 = python("interop/requirements-mcp.txt")?;
        let fastmcp = python("interop/requirements-fastmcp.txt")?;
        Ok(Self { node, scripts, python1, python2, fastmcp })
    }

    /// The FastMCP server of the comparison.
    pub(super) fn fastmcp_server(&self) -> Command {
        let mut command = Command::new(&self.fastmcp);
        command.arg(self.scripts.join("fastmcp_server.py"));
        command
    }

    /// Runs a plan with a client and returns one report per run. The log goes into `folder`.
    pub(super) fn play(&self, package: Package, plan: &Plan, folder: &Path) -> Result<Vec<Report>> {
        let script = package.script();
        let log = folder.join(format!("{script}-{}-{}.log", plan.host, plan.timeout_ms));
        let mut command = Command::new(match package {
            Package::Python1 => &self.python1,
            Package::Python2 => &self.python2,
            _ => &self.node,
        });
        command.arg(script).arg(serde_json::to_string(plan)?).current_dir(&self.scripts);
        command.stdin(Stdio::null()).stderr(File::create(&log)?);
        let output = command.output().with_context(|| format!("could not start {script}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let reports: Result<Vec<Report>, _> = text.lines().map(serde_json::from_str).collect();
        let reports = reports.with_context(|| format!("{script} printed `{text}`"))?;
        ensure!(
            reports.len() == plan.runs.len(),
            "{script} reported {} of {} runs ({}); see {}",
            reports.len(),
            plan.runs.len(),
            output.status,
            log.display()
        );
        Ok(reports)
    }
}
