//! Environments of Python that have what a list of requirements says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xtask::{packages, process};

/// A Python that has what a list says, in a folder for such environments. It is made once for each list.
pub(crate) fn with(list: &Path, environments: &Path) -> Result<PathBuf> {
    let name = list.file_name().context("a list of requirements is a file")?;
    let environment = environments.join(name);
    let wanted = fs::read(list).with_context(|| format!("no {}", list.display()))?;
    let (stamp, python) = (environment.join("installed"), environment.join("bin/python"));
    if fs::read(&stamp).ok().as_ref() != Some(&wanted) {
        eprintln!("installing what {} names with pip", list.display());
        fs::create_dir_all(environments)?;
        let system = packages::ensure(&packages::PYTHON)?;
        process::run(Command::new(system).args(["-m", "venv", "--clear"]).arg(&environment))
            .context("Python 3.10 or newer with `venv` is needed")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        // The lists are complete, so nothing is left to be resolved.
        process::run(pip.args(["--no-deps", "-r"]).arg(list))?;
        fs::write(&stamp, &wanted)?;
    }
    Ok(python)
}

/// Where the environments are: beside what cargo has built.
pub(crate) fn environments(built: &Path) -> Result<PathBuf> {
    let target = built.parent().and_then(Path::parent).context("a program lies in a folder")?;
    Ok(target.join("interop"))
}
