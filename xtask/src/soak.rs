//! `cargo xtask soak`: long traffic against one server, watching memory and open handles.

use anyhow::Result;

use crate::args::Args;
use crate::process;

pub(crate) fn run(args: Args) -> Result<()> {
    let mut soak = process::cargo(&[
        "run",
        "--release",
        "--package",
        "outlive-benches",
        "--bin",
        "soak",
        "--",
    ]);
    process::run(soak.args(args.rest()))
}
