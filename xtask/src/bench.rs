//! `cargo xtask bench`: runs the benchmark; what is typed behind it is the benchmark's own.

use anyhow::Result;

use crate::args::Args;
use crate::process;

pub(crate) fn run(args: Args) -> Result<()> {
    let mut bench = process::cargo(&[
        "run",
        "--release",
        "--package",
        "outlive-benches",
        "--bin",
        "bench",
        "--",
    ]);
    process::run(bench.args(args.rest()))
}
