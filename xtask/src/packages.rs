//! Programs of the system that the tests need: installed when they are missing.
//!
//! The system's packages are asked, whichever the system has. Tests that find no such program fail and
//! say so; they are never left out.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process;

/// A program, which its package is named after everywhere.
pub(crate) struct Package {
    name: &'static str,
    /// What it is asked to see whether it is there.
    version: &'static str,
    /// What needs it.
    user: &'static str,
}

/// A terminal for the tests that look at one.
pub(crate) const TMUX: Package =
    Package { name: "tmux", version: "-V", user: "the tests of the terminal" };

/// Counts instructions.
pub(crate) const VALGRIND: Package =
    Package { name: "valgrind", version: "--version", user: "counting instructions" };

/// Ways to install one: the program that does, and its arguments before the name.
const WAYS: &[(&str, &[&str])] = &[
    ("apt-get", &["install", "--yes", "--no-install-recommends"]),
    ("dnf", &["install", "--assumeyes"]),
    ("apk", &["add"]),
    ("pacman", &["--sync", "--noconfirm"]),
    ("zypper", &["--non-interactive", "install"]),
    ("brew", &["install"]),
];

/// Makes sure that a program is there.
pub(crate) fn ensure(package: &Package) -> Result<()> {
    let Package { name, version, user } = package;
    if is_there(name, version) {
        return Ok(());
    }
    let Some((manager, arguments)) =
        WAYS.iter().find(|(manager, _)| is_there(manager, "--version"))
    else {
        bail!("{user} needs {name}, and nothing here could install it; install it by hand");
    };
    eprintln!("{name} is missing; installing it with {manager}");
    let run = |arguments: &[&str]| {
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
    let install = [arguments, &[*name][..]].concat();
    let by_hand = || format!("could not install {name}; by hand: {manager} {}", install.join(" "));
    if run(&install).is_err() && *manager == "apt-get" {
        // A fresh machine has no list of packages yet.
        run(&["update"]).with_context(by_hand)?;
        run(&install).with_context(by_hand)?;
    }
    match is_there(name, version) {
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
