//! `cargo xtask soak`: long traffic against one server, with checks of memory and leftover
//! resources.

use anyhow::Result;

use xtask::args::Args;
use xtask::process::{self, Build};

pub(crate) fn run(mut args: Args) -> Result<()> {
    let build = Build::wanted(&mut args);
    if args.flag("--short") {
        // Part of the tests, which use an unoptimized build.
        let soak = process::built("outlive-benches", "soak", build)?;
        return process::run(std::process::Command::new(soak).arg("--short"));
    }
    process::run(&mut process::measuring("soak", &args.rest()))
}
