//! Five tools, each written for Outlive and for FastMCP: their lines, and that they work.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::process;

use super::bench::Bench;
use super::language::Language;
use crate::row::Row;

/// A tool in both forms, and a call of it.
struct Compared {
    name: &'static str,
    /// Name of the tool, its arguments, and options of `outlive test`.
    call: &'static [&'static str],
    text: &'static str,
}

const TOOLS: [Compared; 5] = [
    Compared {
        name: "slow",
        call: &["render", "film=alien", "frames=3"],
        text: "alien is rendered",
    },
    Compared {
        name: "asking",
        call: &["deploy", "repo=shop", "--accept", "approve.yes=true"],
        text: "shop is deployed",
    },
    Compared {
        name: "stepwise",
        call: &["deploy", "repo=shop", "regions:=[\"eu\"]", "--crash-after-each"],
        text: "shop:1 is out",
    },
    Compared {
        name: "streaming",
        call: &["translate", "pages:=[\"one\",\"two\"]", "--crash-after-each"],
        text: "ONE\nTWO\n2 pages",
    },
    Compared {
        name: "cleaning_up",
        call: &["order", "item=shoe", "--crash-after-each"],
        text: "ordered from shelf 4",
    },
];

/// Imports the servers of FastMCP without running them.
const IMPORT: &str = "
import runpy, sys
import fastmcp
fastmcp.FastMCP.run = lambda self, *arguments, **options: None
for file in sys.argv[1:]:
    runpy.run_path(file)
print('imported', len(sys.argv) - 1)
";

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for tool in &TOOLS {
        let lines = |end: &str| {
            let text = fs::read_to_string(file(tool, end))?;
            anyhow::Ok(text.lines().filter(|line| !line.trim().is_empty()).count())
        };
        let (ours, theirs) = (lines("outlive")?, lines("fastmcp")?);
        let said = call(bench, tool)?;
        let works = said.trim_end() == tool.text;
        let mut figure = format!("{ours} lines; FastMCP: {theirs}");
        if !works {
            figure.push_str(&format!("; it returned `{}`", said.trim_end()));
        }
        let case = format!("tool `{}` for Outlive and for FastMCP", tool.name);
        let bar = "no more non-blank lines; `outlive test` returns its result";
        rows.push(Row::new(case, figure, bar, works && ours <= theirs));
    }
    if !bench.is_short {
        rows.push(imported(bench)?);
    }
    Ok(rows)
}

fn file(tool: &Compared, end: &str) -> PathBuf {
    let folder = process::root().join("peers/workers/compared");
    folder.join(format!("{}.{end}.py", tool.name))
}

/// Calls the tool for Outlive with `outlive test`, and returns its output.
fn call(bench: &Bench, tool: &Compared) -> Result<String> {
    let (name, value) = Language::Python.package();
    let script = file(tool, "outlive").display().to_string();
    let config = bench.folder().join(format!("{}.toml", tool.name));
    let section = format!(
        "[workers.compared]\ncommand = [\"python3\", {script:?}]\nenv = {{ {name} = {value:?} }}\n"
    );
    fs::write(&config, section)?;
    let output = test(bench.program(), &config, tool)?;
    Ok(output)
}

fn test(program: &Path, config: &Path, tool: &Compared) -> Result<String> {
    let mut command = Command::new(program);
    command.arg("test").arg(config).args(tool.call);
    let output = command.output().context("could not start `outlive test`")?;
    let text = match output.status.success() {
        true => output.stdout,
        false => [output.stdout, output.stderr].concat(),
    };
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Imports the files for FastMCP, so that they are valid for the pinned version.
fn imported(bench: &Bench) -> Result<Row> {
    let python = bench.python_with("peers/workers/requirements-workers-fastmcp.txt")?;
    let files = TOOLS.iter().map(|tool| file(tool, "fastmcp"));
    let output = Command::new(python).args(["-c", IMPORT]).args(files).output()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let last =
        String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
    let is_met = output.status.success() && text == format!("imported {}", TOOLS.len());
    let figure = if is_met { text } else { last };
    Ok(Row::new("the tools for FastMCP", figure, "all are imported by FastMCP 4.1.4", is_met))
}
