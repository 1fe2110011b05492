//! The files that packages have beside the program: man pages, completions and licenses.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::artifacts::empty_folder;
use xtask::process;

/// Licenses in the root of the project.
pub(super) const LICENSES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT"];

/// A shell, the name of its script, and the folder where Debian installs the script.
pub(super) struct Shell {
    name: &'static str,
    pub(super) file: &'static str,
    /// Path on Debian; `None` if Debian has no folder for the shell.
    pub(super) debian_path: Option<&'static str>,
}

const SHELLS: &[Shell] = &[
    Shell {
        name: "bash",
        file: "outlive.bash",
        debian_path: Some("usr/share/bash-completion/completions/outlive"),
    },
    Shell {
        name: "zsh",
        file: "_outlive",
        debian_path: Some("usr/share/zsh/vendor-completions/_outlive"),
    },
    Shell {
        name: "fish",
        file: "outlive.fish",
        debian_path: Some("usr/share/fish/vendor_completions.d/outlive.fish"),
    },
    Shell { name: "powershell", file: "outlive.ps1", debian_path: None },
];

pub(super) struct Payload {
    /// Man pages with their file names, sorted.
    pub(super) man_pages: Vec<(String, Vec<u8>)>,
    pub(super) completions: Vec<(&'static Shell, Vec<u8>)>,
}

impl Payload {
    /// Runs the program to generate the files.
    pub(super) fn read(program: &Path) -> Result<Self> {
        let folder = empty_folder("release-man")?;
        process::run(Command::new(program).arg("man").arg(&folder))?;
        let mut man_pages = Vec::new();
        for entry in fs::read_dir(&folder).context("could not list the man pages")? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            man_pages.push((name, fs::read(&path)?));
        }
        man_pages.sort();
        ensure!(!man_pages.is_empty(), "`outlive man` wrote no page");
        let mut completions = Vec::new();
        for shell in SHELLS {
            let script = process::answer(Command::new(program).args(["completions", shell.name]));
            let script =
                script.with_context(|| format!("`outlive completions {}` failed", shell.name))?;
            completions.push((shell, script.into_bytes()));
        }
        Ok(Self { man_pages, completions })
    }
}
