//! Programs from system packages, installed if they are missing.
//!
//! The package manager of the system installs them. Tests that need a missing program fail with a
//! message, unless they decide to skip.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process;

/// A program and its package names.
#[derive(Debug)]
pub struct Package {
    name: &'static str,
    /// Returns the path of the program if it works.
    find: fn() -> Option<PathBuf>,
    /// Package managers with another name for the package.
    elsewhere: &'static [(&'static str, &'static [&'static str])],
}

/// A terminal for the tests of terminal output.
pub const TMUX: Package =
    Package { name: "tmux", find: || working(&["tmux"], "-V"), elsewhere: &[] };

/// Counts instructions.
pub const VALGRIND: Package =
    Package { name: "valgrind", find: || working(&["valgrind"], "--version"), elsewhere: &[] };

/// A browser for logins.
pub const CHROMIUM: Package = Package {
    name: "chromium",
    find: || {
        let names = [
            "chromium",
            "chromium-browser",
            "google-chrome-stable",
            "google-chrome",
            "/Applications/Chromium.app/Contents/MacOS/Chromium",
            "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        ];
        working(&names, "--version")
    },
    elsewhere: &[("brew", &["--cask", "google-chrome"])],
};

/// Makes the root of a Debian release.
pub const DEBOOTSTRAP: Package = Package {
    name: "debootstrap",
    find: || working(&["debootstrap", "/usr/sbin/debootstrap"], "--version"),
    elsewhere: &[],
};

/// Checks the syntax of a Homebrew formula.
pub const RUBY: Package =
    Package { name: "ruby", find: || working(&["ruby"], "--version"), elsewhere: &[] };

/// A Python that can create virtual environments.
pub const PYTHON: Package = Package {
    name: "python3",
    find: || {
        let python = working(&["python3"], "--version")?;
        process::answer(Command::new(&python).args(["-c", "import ensurepip, venv"]))?;
        Some(python)
    },
    elsewhere: &[
        ("apt-get", &["python3", "python3-venv"]),
        ("pacman", &["python"]),
        ("brew", &["python"]),
    ],
};

/// Package managers, with their arguments before the package names.
const WAYS: &[(&str, &[&str])] = &[
    ("apt-get", &["install", "--yes", "--no-install-recommends"]),
    ("dnf", &["install", "--assumeyes"]),
    ("apk", &["add"]),
    ("pacman", &["--sync", "--noconfirm"]),
    ("zypper", &["--non-interactive", "install"]),
    ("brew", &["install"]),
];

/// Installs a program if it is missing, and returns its path.
pub fn ensure(package: &Package) -> Result<PathBuf> {
    if let Some(found) = (package.find)() {
        return Ok(found);
    }
    let name = package.name;
    let Some((manager, arguments)) =
        WAYS.iter().find(|(manager, _)| working(&[manager], "--version").is_some())
    else {
        bail!("{name} is required, but no package manager was found; install it manually");
    };
    eprintln!("{name} is missing; installing it with {manager}");
    let named = package.elsewhere.iter().find(|(it, _)| it == manager);
    let arguments = [*arguments, named.map_or(&[name][..], |(_, names)| *names)].concat();
    let by_hand = || {
        format!("could not install {name}; install it manually: {manager} {}", arguments.join(" "))
    };
    if install(manager, &arguments).is_err() && *manager == "apt-get" {
        // A fresh machine has no package list yet.
        install(manager, &["update"]).with_context(by_hand)?;
        install(manager, &arguments).with_context(by_hand)?;
    }
    (package.find)().with_context(by_hand)
}

fn install(manager: &str, arguments: &[&str]) -> Result<()> {
    // Homebrew refuses to run as root; the others need it.
    let mut command = match manager == "brew" || is_root() {
        true => Command::new(manager),
        false => {
            let mut sudo = Command::new("sudo");
            sudo.args(["--non-interactive", manager]);
            sudo
        }
    };
    process::run(command.args(arguments))
}

/// Returns the first of these programs that exists and starts.
fn working(names: &[&str], version: &str) -> Option<PathBuf> {
    names.iter().filter_map(|name| on_path(Path::new(name))).find(|program| {
        let mut command = Command::new(program);
        command.arg(version).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

fn on_path(program: &Path) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // An absolute path stays unchanged.
    env::split_paths(&path).map(|folder| folder.join(program)).find(|it| it.is_file())
}

/// Returns whether this process runs as root.
pub fn is_root() -> bool {
    process::answer(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::working;

    #[test]
    fn first_working_program_is_chosen() {
        let found = working(&["no-such-program", "cargo"], "--version").unwrap();
        assert!(found.is_absolute() && found.ends_with("cargo"), "{}", found.display());
        assert_eq!(working(&["no-such-program"], "--version"), None);
    }
}
