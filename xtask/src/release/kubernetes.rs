//! The step `kubernetes`: validates deploy/kubernetes against the schemas of Kubernetes.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::archive::{Entry, gzip, tar};
use super::artifacts::{Artifacts, VERSION};
use xtask::packages;
use xtask::process::{self, target_folder};

const FOLDER: &str = "deploy/kubernetes";

/// The Python package that has the schemas, pinned.
const VALIDATOR: &str = "kubernetes-validate==1.37.0";

pub(super) fn run(artifacts: &mut Artifacts) -> Result<()> {
    let files = manifests()?;
    let validator = validator()?;
    process::run(Command::new(validator).arg("--strict").args(&files))?;
    let mut entries = vec![Entry::folder("kubernetes", 0o755, 0)];
    for file in &files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        entries.push(Entry::file(&format!("kubernetes/{name}"), fs::read(file)?));
    }
    artifacts.write(&format!("outlive-{VERSION}-kubernetes.tar.gz"), &gzip(&tar(&entries)?)?)
}

/// Returns the manifests, sorted by name.
pub(super) fn manifests() -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(process::root().join(FOLDER)).context("no manifests")? {
        files.push(entry?.path());
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    ensure!(!files.is_empty(), "{FOLDER} has no manifests");
    Ok(files)
}

/// Installs the validator into a virtual environment in the target folder.
fn validator() -> Result<PathBuf> {
    let environment = target_folder().join("release-kubernetes");
    let program = environment.join("bin/kubernetes-validate");
    if !program.exists() {
        eprintln!("installing {VALIDATOR}");
        let python = packages::ensure(&packages::PYTHON)?;
        process::run(Command::new(python).args(["-m", "venv"]).arg(&environment))?;
        let mut pip = Command::new(environment.join("bin/pip"));
        process::run(pip.args(["install", "--quiet", VALIDATOR]))?;
    }
    Ok(program)
}
