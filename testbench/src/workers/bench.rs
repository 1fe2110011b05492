//! Programs and folders of a run.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use xtask::args::Args;
use xtask::process::{self, Build};

use crate::conformance::suite;
use crate::python;

/// Settings that all campaigns share.
#[derive(Debug)]
pub(super) struct Bench {
    /// The program `outlive`.
    program: PathBuf,
    /// A new folder, removed after a run that meets every bar.
    folder: PathBuf,
    pub(super) is_short: bool,
    pub(super) seed: u64,
}

impl Bench {
    /// Reads the options and builds the program.
    pub(super) fn new(mut args: Args) -> Result<Self> {
        let build = Build::wanted(&mut args);
        let is_short = args.flag("--short");
        let seed = args.value("--seed")?.map_or(Ok(1), |seed| seed.parse());
        let seed = seed.context("`--seed` needs a number")?;
        let program = args.value("--program")?;
        args.finish()?;
        let program = match program {
            Some(path) => fs::canonicalize(&path).with_context(|| format!("no {path}"))?,
            None => process::built("outlive-cli", "outlive", build)?,
        };
        let folder = std::env::temp_dir().join(format!("outlive-workers-{}", std::process::id()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        Ok(Self { program, folder, is_short, seed })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// A program of `testbench`, in the folder of the program `outlive`.
    pub(super) fn program_beside(&self, name: &str) -> Result<PathBuf> {
        let path = self.program.with_file_name(name);
        ensure!(
            path.exists(),
            "{} is missing; `cargo build --workspace --bins` builds it",
            path.display()
        );
        Ok(path)
    }

    /// `short` in a short run, else `full`.
    pub(super) fn choose<T>(&self, full: T, short: T) -> T {
        if self.is_short { short } else { full }
    }

    /// A Python with the packages of a requirements file of the repository.
    pub(super) fn python_with(&self, list: &str) -> Result<PathBuf> {
        python::with(&process::root().join(list), &python::environments(&self.program)?)
    }

    /// The folder of the installed type checkers and versions of Node.
    pub(super) fn checkers(&self) -> Result<PathBuf> {
        let folder = process::root().join("peers/workers");
        suite::install_once(&folder, suite::LENIENTLY)?;
        Ok(folder.join("node_modules"))
    }
}
