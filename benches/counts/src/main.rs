//! `outlive-counts NAME TIMES` handles a call TIMES times, for instruction counts. The difference
//! of two runs is the cost of the calls without the startup.

#![expect(clippy::print_stdout, reason = "the names are the output of the program")]

use std::env;

use anyhow::{Context, Result};
use outlive_counts::{hot, relayed};

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (name, times) = match &arguments[..] {
        [name, times] => (name, times.parse().context("TIMES must be a number")?),
        [word] if word == relayed::UPSTREAM => return relayed::serve_upstream(),
        _ => {
            println!("{}", hot::NAMES.join("\n"));
            return Ok(());
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(hot::repeat(name, times))
}
