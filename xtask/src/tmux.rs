//! A terminal for the tests that look at one: tmux, installed when it is missing.
//!
//! The system's packages are asked, whichever the system has. Tests that find no tmux fail and say so;
//! they are never left out.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process;

/// Ways to install it: the program that does, and its arguments.
const WAYS: &[(&str, &[&str])] = &[
    ("apt-get", &["install", "--yes", "--no-install-recommends", "tmux"]),
    ("dnf", &["install", "--assumeyes", "tmux"]),
    ("apk", &["add", "tmux"]),
    ("pacman", &["--sync", "--noconfirm", "tmux"]),
    ("zypper", &["--non-interactive", "install", "tmux"]),
    ("brew", &["install", "tmux"]),
];

/// Makes sure that tmux is there.
pub(crate) fn ensure() -> Result<()> {
    if is_there("tmux", "-V") {
        return Ok(());
    }
    let Some((manager, arguments)) =
        WAYS.iter().find(|(manager, _)| is_there(manager, "--version"))
    else {
        bail!(
            "the tests of the terminal need tmux, and nothing here could install it; install it by hand"
        );
    };
    eprintln!("tmux is missing; installing it with {manager}");
    let install = |arguments: &[&str]| {
        // Homebrew refuses to be root; the others have to be.
        let mut command = match *manager == "brew" || is_root() {
            true => Command::new(manager),
            false => {
                let mut sudo = Command::new("sudo");
                sudo.args(["--non-interactive", manager]);
                sudo
            }
        };
        process::run(command.args(arguments))
    };
    let by_hand = || format!("could not install tmux; by hand: {manager} {}", arguments.join(" "));
    if install(arguments).is_err() && *manager == "apt-get" {
        // A fresh machine has no list of packages yet.
        install(&["update"]).with_context(by_hand)?;
        install(arguments).with_context(by_hand)?;
    }
    match is_there("tmux", "-V") {
        true => Ok(()),
        false => bail!(by_hand()),
    }
}

fn is_there(program: &str, version: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(version).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    process::answer(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0")
}
