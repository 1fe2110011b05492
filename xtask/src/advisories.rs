//! `cargo xtask advisories`: known vulnerabilities of the dependencies.
//!
//! `cargo deny` compares the lock file with the RustSec advisory database, which it clones with
//! git. A found advisory is a failure. If the database is unreachable, the check is skipped, and
//! the last lines of the test command say so. `OUTLIVE_ADVISORY_DB` names a git copy of the
//! database to clone from instead.

use std::env;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

use xtask::args::Args;
use xtask::process;
use xtask::tools;

/// The variable with a git repository of the database.
const COPY: &str = "OUTLIVE_ADVISORY_DB";

/// The URL of the database in `cargo deny`.
const DATABASE: &str = "https://github.com/RustSec/advisory-db";

/// The extent of a check.
#[derive(Debug, PartialEq, Eq)]
enum Checked {
    /// No advisory in the current database.
    Clean,
    /// An incomplete check. The text says what was done and why.
    Partly(String),
}

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    match check()? {
        Checked::Clean => println!("no advisory affects the crates in Cargo.lock"),
        Checked::Partly(what) => println!("{what}"),
    }
    Ok(())
}

/// Checks the lock file. Returns a note about an incomplete check.
pub(crate) fn note() -> Result<Option<String>> {
    Ok(match check()? {
        Checked::Clean => None,
        Checked::Partly(what) => Some(what),
    })
}

/// Checks the lock file. A found advisory is an error.
fn check() -> Result<Checked> {
    tools::ensure(&tools::DENY)?;
    let copy = env::var_os(COPY);
    let fetched = output(deny(&["fetch", "db"], copy.as_deref()))?;
    if fetched.status.success() {
        process::run(&mut deny(&["check", "advisories"], copy.as_deref()))?;
        return Ok(Checked::Clean);
    }
    let said = said(&fetched);
    let reason = reason(&said);
    if copy.is_some() {
        bail!("{COPY} is not a copy of {DATABASE}: {reason}");
    }
    if !was_fetched_before() {
        return Ok(not_checked(reason));
    }
    let checked = output(deny(&["--offline", "check", "advisories"], None))?;
    let said = self::said(&checked);
    match judge(checked.status.success(), &said, reason) {
        Some(checked) => Ok(checked),
        None => bail!("`cargo deny check advisories` failed:\n{said}"),
    }
}

/// Returns the result of a check with an older database; `None` if it found an advisory.
fn judge(success: bool, said: &str, reason: &str) -> Option<Checked> {
    if success {
        return Some(Checked::Partly(format!(
            "ADVISORIES: none in the database of an earlier fetch; the update failed: {reason}"
        )));
    }
    // Any other error, such as an outdated database, means that nothing was checked.
    let is_finding = said.contains("advisories FAILED");
    (!is_finding).then(|| not_checked(&format!("{reason}; {}", self::reason(said))))
}

fn not_checked(reason: &str) -> Checked {
    Checked::Partly(format!(
        "ADVISORIES: NOT CHECKED, the database could not be fetched: {reason}; set {COPY} to a git copy of {DATABASE}"
    ))
}

fn deny(args: &[&str], copy: Option<&OsStr>) -> Command {
    let mut deny = process::cargo(&["deny"]);
    deny.args(args).env("GIT_TERMINAL_PROMPT", "0");
    if let Some(copy) = copy {
        // The effect of `git config url.COPY.insteadOf DATABASE`, for this command only.
        let mut key = OsStr::new("url.").to_owned();
        key.push(copy);
        key.push(".insteadOf");
        deny.env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", key)
            .env("GIT_CONFIG_VALUE_0", DATABASE);
    }
    deny
}

fn output(mut command: Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().context("could not start `cargo deny`")
}

/// Returns all output of a command: the verdict is on standard output, errors on standard error.
fn said(output: &Output) -> String {
    [&output.stderr, &output.stdout].map(|said| String::from_utf8_lossy(said).into_owned()).concat()
}

/// Returns the line with the reason: a fatal error of git, or an error of `cargo deny`.
fn reason(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let says_why = |line: &&str| line.starts_with("fatal:") || line.contains("[ERROR]");
    lines.clone().rfind(says_why).or_else(|| lines.next_back()).unwrap_or("no reason was given")
}

/// Whether `cargo deny` has a database from an earlier fetch.
fn was_fetched_before() -> bool {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo")));
    let databases = home.and_then(|home| home.join("advisory-dbs").read_dir().ok());
    databases
        .is_some_and(|mut all| all.any(|one| one.is_ok_and(|one| one.path().join(".git").exists())))
}

#[cfg(test)]
mod tests {
    use super::{Checked, judge};

    #[test]
    fn advisory_found_in_old_database_fails() {
        let found = "error[vulnerability]: RUSTSEC-2026-0001\nadvisories FAILED\n";
        assert_eq!(judge(false, found, "no network"), None);
        let stale = "[ERROR] repository is stale (last update: 2026-01-01)\n";
        let Some(Checked::Partly(said)) = judge(false, stale, "no network") else {
            panic!("a stale database is no finding");
        };
        assert!(
            said.contains("NOT CHECKED") && said.contains("no network; [ERROR] repo"),
            "{said}"
        );
        let Some(Checked::Partly(said)) = judge(true, "", "no network") else {
            panic!("nothing was found");
        };
        assert!(said.contains("earlier fetch"), "{said}");
    }
}
