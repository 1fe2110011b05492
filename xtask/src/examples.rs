//! `cargo xtask examples`: runs every story of `examples/`. Each asserts its own result.

use std::process::Command;

use anyhow::Result;

use crate::args::Args;
use crate::process;

pub(crate) fn run(args: Args) -> Result<()> {
    let check = process::built("outlive-examples", "check")?;
    process::run(Command::new(check).args(args.rest()).current_dir(process::root()))
}
