//! Python environments with the packages of a requirements file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use xtask::{packages, process};

/// Returns a Python with the packages of a requirements file. The environment is created once per
/// file.
pub(crate) fn with(list: &Path, environments: &Path) -> Result<PathBuf> {
    let name = list.file_name().context("a requirements file has a name")?;
    let environment = environments.join(name);
    let wanted = fs::read(list).with_context(|| format!("no {}", list.display()))?;
    let (stamp, python) = (environment.join("installed"), environment.join("bin/python"));
    if fs::read(&stamp).ok().as_ref() != Some(&wanted) {
        eprintln!("installing the packages of {} with pip", list.display());
        fs::create_dir_all(environments)?;
        let system = packages::ensure(&packages::PYTHON)?;
        process::run(Command::new(system).args(["-m", "venv", "--clear"]).arg(&environment))
            .context("Python 3.10 or newer with `venv` is required")?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        // The files are complete, so pip resolves nothing.
        process::run(pip.args(["--no-deps", "-r"]).arg(list))?;
        fs::write(&stamp, &wanted)?;
    }
    Ok(python)
}

/// The folder of the environments, beside cargo's build output.
pub(crate) fn environments(built: &Path) -> Result<PathBuf> {
    let target = built.parent().and_then(Path::parent).context("a program is in a folder")?;
    Ok(target.join("interop"))
}
