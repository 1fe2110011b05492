//! Tests with real processes: the official suite, third-party peers, browsers, crashes, hostile
//! callers.
//!
//! `cargo xtask COMMAND` builds and starts it. Each command has one file or folder; `bin/` has the
//! small servers and clients of the tests.

#![expect(clippy::print_stdout, reason = "a command's report is its product")]

mod clients;
mod conformance;
mod console;
mod crash;
mod executions;
mod gateway;
mod gateway_process;
mod hostile;
mod hosts;
mod interop;
mod logins;
mod page;
mod postgres;
mod program;
mod python;
mod row;
mod serving;
mod site;
mod soak;
mod terminals;
mod views;
mod workers;

use std::process::ExitCode;

use anyhow::{Result, bail};
use xtask::args::Args;

fn main() -> ExitCode {
    match run(Args::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("testbench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(mut args: Args) -> Result<()> {
    match args.word().as_deref() {
        Some("clients") => clients::run(args),
        Some("conformance") => conformance::run(args),
        Some("console") => console::run(args),
        Some("crash") if args.flag("--gateway") => gateway::crash(args),
        Some("crash") => crash::run(args),
        Some("gateway-isolation") => gateway::isolation(args),
        Some("gateway-restarts") => gateway::restarts(args),
        Some("hostile") => hostile::run(args),
        Some("hostile-upstreams") => gateway::hostile(args),
        Some("hosts") => hosts::run(args),
        Some("interop") => interop::run(args),
        Some("killed-clients") => crash::killed::run(args),
        Some("logins") => logins::run(args),
        Some("postgres") => postgres::run(args),
        Some("program") => program::run(args),
        Some("rolling") => crash::rolling::run(args),
        Some("site") => site::run(args),
        Some("soak") => soak::run(args),
        Some("streams") => crash::streams::run(args),
        Some("takeover") => crash::takeover::run(args),
        Some("views") => views::run(args),
        Some("workers") => workers::run(args),
        other => bail!("unknown command {other:?}; `cargo xtask` lists the commands"),
    }
}
