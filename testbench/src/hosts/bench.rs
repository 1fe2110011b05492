//! Programs and folders of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use xtask::args::Args;
use xtask::process::{self, Build};

use super::packages::Packages;

/// Settings that all campaigns share.
#[derive(Debug)]
pub(super) struct Bench {
    /// The program `outlive`.
    program: PathBuf,
    /// A new folder, removed after a run that meets every bar.
    folder: PathBuf,
    pub(super) is_short: bool,
    pub(super) seed: u64,
    /// Whether `bytes` records the messages of the program instead of comparing them.
    pub(super) records: bool,
    packages: Mutex<Option<Arc<Packages>>>,
}

impl Bench {
    /// Reads the options and builds the program.
    pub(super) fn new(mut args: Args) -> Result<Self> {
        let build = Build::wanted(&mut args);
        let is_short = args.flag("--short");
        let records = args.flag("--record");
        let seed = args.value("--seed")?.map_or(Ok(1), |seed| seed.parse());
        let seed = seed.context("`--seed` needs a number")?;
        let program = args.value("--program")?;
        args.finish()?;
        let program = match program {
            Some(path) => fs::canonicalize(&path).with_context(|| format!("no {path}"))?,
            None => process::built("outlive-cli", "outlive", build)?,
        };
        let folder = std::env::temp_dir().join(format!("outlive-hosts-{}", std::process::id()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        Ok(Self { program, folder, is_short, seed, records, packages: Mutex::default() })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The client packages, which the first use installs.
    pub(super) fn packages(&self) -> Result<Arc<Packages>> {
        let mut packages = self.packages.lock().unwrap_or_else(PoisonError::into_inner);
        if packages.is_none() {
            *packages = Some(Arc::new(Packages::install(&self.program)?));
        }
        packages.clone().context("the packages are installed")
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
}
