//! The interpreters of this machine for which the packages are tested.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::process;

use super::bench::Bench;

/// The oldest and the newest minor version of Python 3.
pub(super) const PYTHONS: std::ops::RangeInclusive<u32> = 10..=14;
/// Prints the minor version of an interpreter that can create environments.
const PROBE: &str = "import ensurepip, venv, sys; print(*sys.version_info[:2])";

/// An interpreter and its version.
#[derive(Clone, Debug)]
pub(super) struct Interpreter {
    pub(super) version: String,
    pub(super) program: PathBuf,
}

/// Returns one Python of each minor version, the oldest first. A short run has only one.
pub(super) fn pythons(bench: &Bench) -> Result<Vec<Interpreter>> {
    let names = PYTHONS.map(|minor| format!("python3.{minor}")).chain(["python3".to_owned()]);
    let names: Vec<String> = names.collect();
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = vec!["/usr/bin".into()];
    folders.extend(env::split_paths(&path));
    folders.extend(pyenv_versions());
    let mut found = BTreeMap::new();
    for program in folders.iter().flat_map(|folder| names.iter().map(|name| folder.join(name))) {
        if !program.is_file() {
            continue;
        }
        if let Some(minor) = minor_version(&program) {
            found.entry(minor).or_insert(program);
        }
    }
    ensure!(
        !found.is_empty(),
        "no Python of version 3.10 to 3.14 with `venv` was found; install python3-venv"
    );
    let all = found.into_iter().map(|(minor, program)| {
        let version = format!("3.{minor}");
        Interpreter { version, program }
    });
    Ok(all.take(bench.choose(usize::MAX, 1)).collect())
}

/// Returns the Node of the system, and in a full run also the pinned versions.
pub(super) fn nodes(bench: &Bench) -> Result<Vec<Interpreter>> {
    let version = process::answer(Command::new("node").arg("--version"));
    let version = version.context("node is missing; install Node.js 20 or newer")?;
    let version = version.trim().trim_start_matches('v').to_owned();
    let mut nodes = vec![Interpreter { version, program: "node".into() }];
    if !bench.is_short {
        let folder = bench.checkers()?;
        nodes = ["20", "22", "24"]
            .map(|major| Interpreter {
                version: major.to_owned(),
                program: folder.join(format!("node-{major}/bin/node")),
            })
            .to_vec();
    }
    Ok(nodes)
}

/// Returns the minor version of a Python 3 in [`PYTHONS`].
fn minor_version(program: &Path) -> Option<u32> {
    let version = process::answer(Command::new(program).args(["-c", PROBE]))?;
    let minor = version.trim().strip_prefix("3 ")?.parse().ok()?;
    PYTHONS.contains(&minor).then_some(minor)
}

/// Returns the folders of programs of pyenv's versions.
fn pyenv_versions() -> Vec<PathBuf> {
    let root = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".pyenv")));
    let Some(versions) = root.and_then(|root| root.join("versions").read_dir().ok()) else {
        return Vec::new();
    };
    versions.filter_map(|version| Some(version.ok()?.path().join("bin"))).collect()
}
