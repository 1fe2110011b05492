//! The packages: built, installed into clean environments, and tested there.
//!
//! The tests run against the installed files, because the folders of the tests have no other ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use xtask::process;

use super::bench::Bench;
use super::interpreters::{self, Interpreter};
use crate::row::Row;

/// The functions of the build backend, each with the end of its file. A process calls one of them.
const BUILDS: [(&str, &str); 2] = [("build_wheel", ".whl"), ("build_sdist", ".tar.gz")];

const BAR: &str = "installed from its built files without dependencies; its tests pass there";

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // The tests mostly wait.
    thread::scope(|scope| {
        let python = scope.spawn(|| python(bench));
        let node = node(bench);
        let mut rows = python.join().map_err(|_| anyhow!("a thread panicked"))??;
        rows.extend(node?);
        Ok(rows)
    })
}

fn python(bench: &Bench) -> Result<Vec<Row>> {
    let folder = bench.folder().join("packages-python");
    let source = process::root().join("workers/python");
    let build = folder.join("build");
    // A copy, because a build writes into its folder.
    for part in ["outlive", "pyproject.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&source.join(part), &build.join(part))?;
    }
    let python = bench.python_with("peers/workers/requirements-workers.txt")?;
    let [wheel, sdist] = BUILDS.map(|(function, end)| built(&python, &build, function, end));
    let (wheel, sdist) = (wheel?, sdist?);
    let mut rows = Vec::new();
    for interpreter in interpreters::pythons(bench)? {
        rows.push(python_row(&folder, &interpreter, &wheel)?);
    }
    rows.push(sdist_row(&folder, &python, &sdist)?);
    Ok(rows)
}

/// Calls a function of the build backend, and returns the file that it has built.
fn built(python: &Path, source: &Path, function: &str, end: &str) -> Result<PathBuf> {
    let call = format!("from setuptools import build_meta; build_meta.{function}('..')");
    let mut command = Command::new(python);
    let (_, output) = outcome(command.args(["-c", &call]).current_dir(source))?;
    let folder = source.parent().context("the source is in a folder")?;
    let mut entries = fs::read_dir(folder)?.map_while(Result::ok).map(|entry| entry.path());
    let found = entries.find(|path| path.to_string_lossy().ends_with(end));
    found.with_context(|| format!("`{function}` has built no {end}:\n{output}"))
}

/// Installs the wheel into a new environment, and runs the tests without the source folder.
fn python_row(folder: &Path, interpreter: &Interpreter, wheel: &Path) -> Result<Row> {
    let version = &interpreter.version;
    let place = folder.join(format!("python-{version}"));
    let environment = place.join("environment");
    process::run(Command::new(&interpreter.program).args(["-m", "venv"]).arg(&environment))?;
    let python = environment.join("bin/python");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--disable-pip-version-check"]);
    process::run(pip.arg(wheel))?;
    let workers = place.join("workers");
    lay_out(&place, &["docs", "workers/protocol", "workers/shell", "workers/python/tests"])?;
    lay_out(&place, &["workers/python/pyproject.toml", "workers/python/README.md"])?;
    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "-s", "tests"]);
    let (passed, output) = outcome(tests.current_dir(workers.join("python")))?;
    let figure = last_lines(&output);
    let is_met = passed && output.contains("\nRan ") && output.trim_end().ends_with("OK");
    Ok(Row::new(format!("wheel, Python {version}"), figure, BAR, is_met))
}

/// Installs the source distribution, and imports the package from another folder.
fn sdist_row(folder: &Path, python: &Path, sdist: &Path) -> Result<Row> {
    let target = folder.join("from-sdist");
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation"]);
    process::run(pip.args(["--disable-pip-version-check", "--target"]).arg(&target).arg(sdist))?;
    let check = "import outlive, pathlib; \
                 print(outlive.Outlive('x').entries(), (pathlib.Path(outlive.__file__).parent / 'py.typed').exists())";
    let mut import = Command::new(python);
    let (passed, output) = outcome(import.args(["-c", check]).env("PYTHONPATH", &target))?;
    let is_met = passed && output.trim() == "[] True";
    Ok(Row::new(
        "source distribution",
        output.trim(),
        "installed; the package has its types",
        is_met,
    ))
}

fn node(bench: &Bench) -> Result<Vec<Row>> {
    let folder = bench.folder().join("packages-node");
    fs::create_dir_all(&folder)?;
    let mut pack = Command::new("npm");
    pack.args(["pack", "--loglevel=error", "--pack-destination"]).arg(&folder);
    let (packed, output) = outcome(pack.current_dir(process::root().join("workers/node")))?;
    let name = output.lines().rev().find(|line| line.ends_with(".tgz"));
    let Some(name) = name.filter(|_| packed) else { bail!("`npm pack` failed:\n{output}") };
    let archive = folder.join(name);
    let mut rows = Vec::new();
    for interpreter in interpreters::nodes(bench)? {
        rows.push(node_row(&folder, &interpreter, &archive)?);
    }
    Ok(rows)
}

/// Installs the archive into a new folder, and runs the tests beside the installed files.
fn node_row(folder: &Path, interpreter: &Interpreter, archive: &Path) -> Result<Row> {
    let version = &interpreter.version;
    let place = folder.join(format!("node-{version}"));
    fs::create_dir_all(&place)?;
    fs::write(place.join("package.json"), "{\"private\": true}")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund"]);
    process::run(npm.arg("--loglevel=error").arg(archive).current_dir(&place))?;
    // The tests name the protocol, the documentation and the package by their place.
    let inner = place.join("workers/node");
    lay_out(&place, &["docs", "workers/protocol", "workers/node/test"])?;
    for entry in fs::read_dir(place.join("node_modules/outlive"))? {
        let entry = entry?;
        fs::rename(entry.path(), inner.join(entry.file_name()))?;
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(inner.join("test"))? {
        let path = entry?.path();
        files.extend(path.to_string_lossy().ends_with(".test.mjs").then_some(path));
    }
    let mut tests = Command::new(&interpreter.program);
    tests.args(["--test", "--test-reporter=tap"]).args(&files).current_dir(&inner);
    let (passed, output) = outcome(&mut tests)?;
    let count = |name: &str| {
        let line = output.lines().rev().find_map(|line| line.strip_prefix(&format!("# {name} ")));
        line.and_then(|count| count.parse::<u32>().ok()).unwrap_or(0)
    };
    let (pass, fail) = (count("pass"), count("fail"));
    let mut figure = format!("{pass} tests pass, {fail} fail");
    if let Some(line) = output.lines().find(|line| line.trim_start().starts_with("not ok")) {
        figure.push_str(&format!("; first: {}", line.trim()));
    }
    let is_met = passed && pass > 0 && fail == 0;
    Ok(Row::new(format!("npm package, Node {version}"), figure, BAR, is_met))
}

/// Copies parts of the repository into a folder, with the same paths.
pub(super) fn lay_out(place: &Path, parts: &[&str]) -> Result<()> {
    parts.iter().try_for_each(|part| copy(&process::root().join(part), &place.join(part)))
}

/// Copies a file, or a folder without files that Python has compiled.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            if entry.file_name() != "__pycache__" {
                copy(&entry.path(), &to.join(entry.file_name()))?;
            }
        }
        return Ok(());
    }
    let parent: PathBuf = to.parent().context("a file is in a folder")?.to_owned();
    fs::create_dir_all(parent)?;
    fs::copy(from, to).with_context(|| format!("could not copy {}", from.display()))?;
    Ok(())
}

/// Runs a command. Returns whether it succeeded, and its output.
fn outcome(command: &mut Command) -> Result<(bool, String)> {
    let output = command.output().with_context(|| format!("no {}", process::shown(command)))?;
    let text = [output.stdout, b"\n".to_vec(), output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

/// The last lines of the output of tests, in one line.
fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(2)..].join("; ")
}
