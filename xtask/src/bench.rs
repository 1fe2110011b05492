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
    let mut bench = process::measuring("bench", words);
    // Starts a database for the measurement, unless one is configured.
    let wants_postgres = words.windows(2).any(|pair| pair == ["--store", "postgres"]);
    if wants_postgres && env::var_os(testbench::ADDRESS).is_none() {
        return testbench::with_postgres(&[], &bench, Build::Alone);
    }
    process::run(&mut bench)
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
