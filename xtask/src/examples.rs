//! `cargo xtask examples`: runs every program in `examples/`. Each asserts its own result.

use std::process::Command;

use anyhow::Result;

use xtask::args::Args;
use xtask::process::{self, Build};

pub(crate) fn run(mut args: Args) -> Result<()> {
    let build = Build::wanted(&mut args);
    let check = process::built("outlive-examples", "check", build)?;
    process::run(Command::new(check).args(args.rest()).current_dir(process::root()))
}
