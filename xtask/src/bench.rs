//! `cargo xtask bench`: runs the benchmark program with the remaining arguments.

use std::env;

use anyhow::Result;
use xtask::{
    args::Args,
    process::{self, Build},
};

use crate::testbench;

pub(crate) fn run(args: Args) -> Result<()> {
    let words = args.rest();
    let mut bench = process::measuring("bench", &words);
    // Starts a database for the measurement, unless one is configured.
    let wants_postgres = words.windows(2).any(|pair| pair == ["--store", "postgres"]);
    if wants_postgres && env::var_os(testbench::ADDRESS).is_none() {
        return testbench::with_postgres(&[], &bench, Build::Alone);
    }
    process::run(&mut bench)
}
