//! Options and folders of all campaigns.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use xtask::{
    args::Args,
    process::{self, Build},
};

/// Short, so that a frozen worker loses its leases during a test.
pub(super) const LEASE: Duration = Duration::from_secs(2);

/// Returns the server program: the named one, or a new build.
pub(super) fn server(args: &mut Args) -> Result<PathBuf> {
    let build = Build::wanted(args);
    program(args, "--server", "crash-server", build)
}

pub(super) fn program(args: &mut Args, option: &str, bin: &str, build: Build) -> Result<PathBuf> {
    match args.value(option)? {
        Some(path) => Ok(path.into()),
        None => process::built("testbench", bin, build),
    }
}

pub(super) fn number(args: &mut Args, name: &str) -> Result<Option<u64>> {
    let Some(value) = args.value(name)? else { return Ok(None) };
    let parsed = value.parse();
    Ok(Some(parsed.with_context(|| format!("`{name}` needs a number, not `{value}`"))?))
}

/// Removes the folder of a successful run; otherwise prints its path.
pub(super) fn in_folder<T>(folder: &Path, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let outcome = run();
    match &outcome {
        Ok(_) => fs::remove_dir_all(folder).context("could not remove the folder of the run")?,
        Err(_) => eprintln!("the oracle and the server logs are in {}", folder.display()),
    }
    outcome
}

/// Creates a folder for this run.
pub(super) fn folder(name: &str) -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("outlive-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).with_context(|| format!("could not create {}", path.display()))?;
    Ok(path)
}
