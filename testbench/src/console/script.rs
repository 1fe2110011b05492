//! The script of the pages, checked by the TypeScript compiler.

use anyhow::Result;
use xtask::process;

use super::bench::Bench;
use crate::row::Row;

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut tsc = bench.packages()?.command("node_modules/typescript/bin/tsc");
    tsc.args(["--allowJs", "--checkJs", "--noEmit", "--strict", "--target", "es2022"]);
    tsc.args(["--lib", "es2022,dom,dom.iterable"]);
    tsc.arg(process::root().join("crates/console/assets/console.js"));
    let output = tsc.output()?;
    let found = String::from_utf8_lossy(&output.stdout);
    let errors: Vec<&str> = found.lines().filter(|line| line.contains("error TS")).collect();
    let mut figure = format!("{} errors", errors.len());
    if let Some(first) = errors.first() {
        figure.push_str(&format!("; first: {first}"));
    }
    let is_met = output.status.success() && errors.is_empty();
    Ok(vec![Row::new("script of the pages, `tsc --checkJs --strict`", figure, "0 errors", is_met)])
}
