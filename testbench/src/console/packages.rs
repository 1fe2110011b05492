//! Node, its packages and the scripts in `conformance/console`.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use xtask::packages::{self, CHROMIUM};
use xtask::process;

use crate::conformance::suite::{self, Suite};
use crate::row::Row;

/// The installed packages.
#[derive(Debug)]
pub(super) struct Packages {
    node: PathBuf,
    folder: PathBuf,
}

/// A row that a script prints.
#[derive(Debug, Deserialize)]
struct Line {
    case: String,
    figure: String,
    bar: String,
    met: bool,
}

impl Packages {
    /// Installs the packages of the lock file, unless they are installed.
    pub(super) fn install() -> Result<Self> {
        let conformance = process::root().join("conformance");
        // The node version of the suite is new enough for these scripts.
        let node = Suite::ready(&conformance)?.node().to_owned();
        let folder = conformance.join("console");
        suite::install_once(&folder, suite::LENIENTLY)?;
        Ok(Self { node, folder })
    }

    /// A command that runs a file of the folder.
    pub(super) fn command(&self, file: &str) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(file).current_dir(&self.folder);
        command
    }

    /// Runs a script with its settings and returns its rows.
    pub(super) fn rows(&self, file: &str, settings: &Value) -> Result<Vec<Row>> {
        let mut script = self.command(file);
        script.arg(settings.to_string()).stdout(Stdio::piped());
        let mut child = script.spawn().context("could not start node")?;
        let mut rows = Vec::new();
        for line in BufReader::new(output(&mut child)?).lines() {
            let line = line?;
            let Ok(Line { case, figure, bar, met }) = serde_json::from_str(&line) else {
                bail!("{file} printed the invalid line {line}");
            };
            rows.push(Row::new(case, figure, bar, met));
        }
        let status = child.wait()?;
        ensure!(status.success(), "{file} failed: {status}");
        ensure!(!rows.is_empty(), "{file} measured nothing");
        Ok(rows)
    }
}

/// Returns the browser. If it is missing, prints a warning, or fails in continuous integration.
pub(super) fn browser() -> Result<Option<PathBuf>> {
    match packages::ensure(&CHROMIUM) {
        Ok(chromium) => Ok(Some(chromium)),
        Err(why) if env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false") => {
            Err(why.context("`console` needs a browser, and CI is set"))
        }
        Err(why) => {
            eprintln!("\n*** NOT RUN, and not counted as a failure: the pages. {why:#} ***\n");
            Ok(None)
        }
    }
}

/// Returns the standard output of a process.
pub(super) fn output(child: &mut Child) -> Result<ChildStdout> {
    child.stdout.take().context("the process has a standard output")
}
