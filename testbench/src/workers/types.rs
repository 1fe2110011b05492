//! The types of the packages and of the stories, checked by the type checkers of both languages.

use std::process::Command;

use anyhow::{Context, Result};
use xtask::process;

use super::bench::Bench;
use super::interpreters::PYTHONS;
use crate::row::Row;

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let checkers = bench.checkers()?;
    let python = bench.python_with("peers/workers/requirements-workers.txt")?;
    let workers = process::root().join("workers");
    let mut rows = Vec::new();
    for minor in PYTHONS.take(bench.choose(usize::MAX, 1)) {
        let version = format!("3.{minor}");
        let mut mypy = Command::new(&python);
        mypy.args(["-m", "mypy", "--python-version", &version, "--cache-dir"]);
        mypy.arg(bench.folder().join("mypy")).current_dir(workers.join("python"));
        rows.push(row(&format!("mypy, strict, Python {version}"), &mut mypy)?);
        let mut pyright = Command::new("node");
        pyright.arg(checkers.join("pyright/index.js")).args(["--pythonversion", &version]);
        pyright.arg("--pythonpath").arg(&python).current_dir(workers.join("python"));
        rows.push(row(&format!("pyright, strict, Python {version}"), &mut pyright)?);
    }
    let mut tsc = Command::new("node");
    tsc.arg(checkers.join("typescript/bin/tsc")).arg("-p").arg(workers.join("node"));
    rows.push(row("tsc, strict", &mut tsc)?);
    Ok(rows)
}

fn row(case: &str, command: &mut Command) -> Result<Row> {
    let output = command.output().with_context(|| format!("no {}", process::shown(command)))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let is_error = |line: &&str| {
        line.contains("error:") || line.contains(" error ") || line.contains("error TS")
    };
    let errors: Vec<&str> = text.lines().filter(is_error).collect();
    let mut figure = format!("{} errors", errors.len());
    if let Some(first) = errors.first() {
        figure.push_str(&format!("; first: {}", first.trim()));
    } else if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        figure = stderr.lines().last().unwrap_or("it failed without a message").to_owned();
    }
    Ok(Row::new(case, figure, "0 errors", output.status.success() && errors.is_empty()))
}
