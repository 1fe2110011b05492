//! `cargo xtask fuzz TARGET [--seconds N]`: runs one fuzz target.

use std::process::Command;

use anyhow::{Context, Result, bail};

use xtask::args::Args;
use xtask::process;

const SECONDS: &str = "60";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let seconds = args.value("--seconds")?.unwrap_or_else(|| SECONDS.to_owned());
    let seconds: u64 =
        seconds.parse().with_context(|| format!("`--seconds {seconds}` must be a number"))?;
    let Some(target) = args.word() else {
        bail!("name a fuzz target: one of the files in fuzz/fuzz_targets, without `.rs`");
    };
    args.finish()?;

    if process::answer(nightly().arg("--version")).is_none() {
        bail!(
            "fuzzing needs the nightly compiler; install it with `rustup toolchain install nightly`"
        );
    }
    if process::answer(nightly().args(["fuzz", "--version"])).is_none() {
        bail!("cargo-fuzz is missing; install it with `cargo install --locked cargo-fuzz`");
    }
    process::run(nightly().args([
        "fuzz",
        "run",
        &target,
        "--",
        &format!("-max_total_time={seconds}"),
    ]))
}

/// The nightly cargo. It is started by name, because only rustup's proxy understands `+nightly`.
fn nightly() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.arg("+nightly").current_dir(process::root());
    cargo
}
