//! Runs every story on stdio and on HTTP, in both eras, and checks what it says.
//!
//! `cargo run -p outlive-examples --bin check`

#[path = "../calculator/check.rs"]
mod calculator;
mod client;
#[path = "../dynamic/check.rs"]
mod dynamic;
#[path = "../echo/check.rs"]
mod echo;
#[path = "../low_level/check.rs"]
mod low_level;
#[path = "../patterns/check.rs"]
mod patterns;
#[path = "../release/check.rs"]
mod release;
#[path = "../rolling_upgrade/check.rs"]
mod rolling_upgrade;
#[path = "../sqlite_explorer/check.rs"]
mod sqlite_explorer;
#[path = "../work_items/check.rs"]
mod work_items;

use anyhow::{Context, Result};
use client::{Client, Era, Wire};

/// A program, and the half that checks it.
type Story = (&'static str, fn(&mut Client) -> Result<()>);

const STORIES: [Story; 9] = [
    ("calculator", calculator::check),
    ("echo", echo::check),
    ("sqlite-explorer", sqlite_explorer::check),
    ("dynamic", dynamic::check),
    ("low-level", low_level::check),
    ("work-items", work_items::check),
    ("rolling-upgrade", rolling_upgrade::check),
    ("release", release::check),
    ("patterns", patterns::check),
];

fn main() -> Result<()> {
    let mut passed = 0;
    for (program, check) in STORIES {
        for wire in [Wire::Stdio, Wire::Http] {
            for era in [Era::Modern, Era::Legacy] {
                let name = format!("{program} on {wire:?}, {era:?}");
                let mut client =
                    Client::start(program, &[], wire, era).with_context(|| name.clone())?;
                check(&mut client).with_context(|| name.clone())?;
                eprintln!("ok  {name}");
                passed += 1;
            }
        }
    }
    eprintln!("{passed} passed, 0 failed");
    Ok(())
}
