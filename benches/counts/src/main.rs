//! `outlive-counts NAME TIMES` answers a call so many times, for whoever counts instructions: the
//! difference between two runs is what the calls cost, without what it costs to start.

#![expect(clippy::print_stdout, reason = "the names are its product")]

use std::env;

use anyhow::{Context, Result};
use outlive_counts::hot;

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [name, times] = &arguments[..] else {
        println!("{}", hot::NAMES.join("\n"));
        return Ok(());
    };
    let times = times.parse().context("TIMES is a number")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    runtime.block_on(async { hot::path(name).await?.repeat(times) })
}
