//! Programs, folders and options of a run.

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
    /// A program that was built before the console existed, to compare sizes.
    pub(super) baseline: Option<PathBuf>,
    /// A new folder, removed after a run that meets every bar.
    folder: PathBuf,
    /// Folder of the pictures of every screen.
    pub(super) screenshots: Option<PathBuf>,
    /// Folder of the pictures of the documentation, which are then the only campaign.
    pub(super) pictures: Option<PathBuf>,
    pub(super) is_short: bool,
    pub(super) seed: u64,
    /// The stores of the campaigns, with the number of replicas.
    stores: &'static [(&'static str, usize)],
    packages: Mutex<Option<Arc<Packages>>>,
}

impl Bench {
    /// Reads the options and builds the program.
    pub(super) fn new(mut args: Args) -> Result<Self> {
        let build = Build::wanted(&mut args);
        let is_short = args.flag("--short");
        let seed = args.value("--seed")?.map_or(Ok(1), |seed| seed.parse());
        let seed = seed.context("`--seed` needs a number")?;
        let stores = stores(args.value("--store")?.as_deref(), is_short)?;
        let program = args.value("--program")?;
        let baseline = args.value("--baseline")?.map(PathBuf::from);
        let screenshots = args.value("--screenshots")?;
        let pictures = args.value("--pictures")?;
        args.finish()?;
        let program = match program {
            Some(path) => fs::canonicalize(&path).with_context(|| format!("no {path}"))?,
            None => process::built("outlive-cli", "outlive", build)?,
        };
        let folder = std::env::temp_dir().join(format!("outlive-console-{}", std::process::id()));
        fs::create_dir_all(&folder)
            .with_context(|| format!("could not create {}", folder.display()))?;
        let screenshots = screenshots.map(folder_at).transpose()?;
        let pictures = pictures.map(folder_at).transpose()?;
        let packages = Mutex::default();
        Ok(Self {
            program,
            baseline,
            folder,
            screenshots,
            pictures,
            is_short,
            seed,
            stores,
            packages,
        })
    }

    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Node, its packages and the scripts, which the first use installs.
    pub(super) fn packages(&self) -> Result<Arc<Packages>> {
        let mut packages = self.packages.lock().unwrap_or_else(PoisonError::into_inner);
        if packages.is_none() {
            *packages = Some(Arc::new(Packages::install()?));
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

    /// The stores of a campaign with the number of replicas: both in a full run.
    pub(super) fn stores(&self) -> &'static [(&'static str, usize)] {
        self.stores
    }
}

/// Returns the stores of a run: the chosen one, SQLite for a short run, or both.
fn stores(chosen: Option<&str>, is_short: bool) -> Result<&'static [(&'static str, usize)]> {
    const BOTH: &[(&str, usize)] = &[("sqlite", 1), ("postgres", 3)];
    match chosen {
        None if is_short => Ok(&BOTH[..1]),
        None => Ok(BOTH),
        Some(name) => {
            let index = BOTH.iter().position(|(store, _)| *store == name);
            let index = index.context("`--store` is `sqlite` or `postgres`")?;
            Ok(&BOTH[index..=index])
        }
    }
}

/// Creates a folder and returns its absolute path. The scripts run in another folder.
fn folder_at(path: String) -> Result<PathBuf> {
    fs::create_dir_all(&path).with_context(|| format!("could not create {path}"))?;
    Ok(fs::canonicalize(path)?)
}
