//! `cargo xtask bench`: runs the benchmark program with the remaining arguments, and draws the plots
//! of its figures.

use std::{env, fs};

use anyhow::{Context, Result, bail};
use outlive_plots::PLOTS;
use xtask::{
    args::Args,
    process::{self, Build},
};

use crate::testbench;

/// Suites that measure the program `outlive`.
const PROGRAM_SUITES: [&str; 3] = ["gateway", "gateway-lists", "memory"];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let plot = args.flag("--plot");
    let words = args.rest();
    match (plot, words.as_slice()) {
        (true, []) => return draw(),
        (true, [first, ..]) => {
            bail!(
                "`--plot` measures nothing, so `{first}` has no meaning; `--write` measures and draws"
            )
        }
        (false, _) => {}
    }
    let measured = measure(&words);
    // A missed bar is a failure, but its figures are written.
    if words.iter().any(|word| word == "--write") {
        draw()?;
    }
    measured
}

fn measure(words: &[String]) -> Result<()> {
    if needs_program(words) {
        // The benchmark starts it from the folder of `bench`.
        let build = ["build", "--profile", "dist", "--package", "outlive-cli", "--bin", "outlive"];
        process::run(&mut process::cargo(&build))?;
    }
    let mut bench = process::measuring("bench", words);
    // Starts a database for the measurement, unless one is configured.
    let wants_postgres = words.windows(2).any(|pair| pair == ["--store", "postgres"]);
    if wants_postgres && env::var_os(testbench::ADDRESS).is_none() {
        return testbench::with_postgres(&[], &bench, Build::Alone);
    }
    process::run(&mut bench)
}

/// Returns whether a suite with the program `outlive` is measured.
fn needs_program(words: &[String]) -> bool {
    let other = ["soak", "serve", "on", "client", "loop", "help", "--help", "-h"];
    if words.iter().any(|word| other.contains(&word.as_str())) {
        return false;
    }
    let suites: Vec<&str> = words
        .windows(2)
        .filter(|pair| pair[0] == "--only")
        .flat_map(|pair| pair[1].split(','))
        .collect();
    let has_program = |suite: &&str| PROGRAM_SUITES.contains(suite);
    suites.is_empty() || suites.iter().any(has_program)
}

/// Draws every plot from its figures.
fn draw() -> Result<()> {
    let root = process::root();
    for plot in PLOTS {
        let image = plot.draw(|file| fs::read_to_string(root.join(file)).ok())?;
        fs::write(root.join(plot.image), image)
            .with_context(|| format!("could not write {}", plot.image))?;
        println!("{}", plot.image);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::needs_program;

    #[test]
    fn program_is_built_for_suites_with_gateway() {
        let needs = |line: &str| {
            needs_program(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        };
        assert!(needs("") && needs("--quick --only http,gateway") && needs("--only memory"));
        assert!(!needs("--only http --no-peers") && !needs("--help") && !needs("soak"));
    }
}
