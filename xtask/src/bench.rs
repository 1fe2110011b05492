//! `cargo xtask bench`: runs the benchmark; what is typed behind it is the benchmark's own.

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
    // A database for as long as it is measured, unless there is one.
    let wants_postgres = words.windows(2).any(|pair| pair == ["--store", "postgres"]);
    if wants_postgres && env::var_os(testbench::ADDRESS).is_none() {
        return testbench::with_postgres(&[], &bench, Build::Alone);
    }
    process::run(&mut bench)
}
