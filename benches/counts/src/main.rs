//! `outlive-counts NAME TIMES` handles a call TIMES times, for instruction counts. The difference
//! of two runs is the cost of the calls without the startup.

#![expect(clippy::print_stdout, reason = "the names are the output of the program")]

use std::env;

use anyhow::{Context, Result};
use outlive_counts::hot;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [name, times] = &arguments[..] else {
        println!("{}", hot::NAMES.join("\n"));
        return Ok(());
    };
    let times = times.parse().context("TIMES must be a number")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async { hot::path(name).await?.repeat(times) })
}
