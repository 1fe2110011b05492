//! Runs every example over stdio and HTTP, in both eras, with the Outlive client, and checks its
//! behavior.
//!
//! `cargo run -p outlive-examples --bin check`

#[path = "../calculator/check.rs"]
mod calculator;
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
mod stage;
#[path = "../work_items/check.rs"]
mod work_items;

use std::{pin::Pin, time::Duration};

use anyhow::{Context, Result};
use stage::{Era, Stage, Wire};

/// A program and its check.
type Story = (&'static str, fn(Stage) -> Checking);
type Checking = Pin<Box<dyn Future<Output = Result<()>>>>;

const STORIES: [Story; 9] = [
    ("calculator", |stage| Box::pin(calculator::check(stage))),
    ("echo", |stage| Box::pin(echo::check(stage))),
    ("sqlite-explorer", |stage| Box::pin(sqlite_explorer::check(stage))),
    ("dynamic", |stage| Box::pin(dynamic::check(stage))),
    ("low-level", |stage| Box::pin(low_level::check(stage))),
    ("work-items", |stage| Box::pin(work_items::check(stage))),
    ("rolling-upgrade", |stage| Box::pin(rolling_upgrade::check(stage))),
    ("release", |stage| Box::pin(release::check(stage))),
    ("patterns", |stage| Box::pin(patterns::check(stage))),
];

/// Timeout of one check. Reached only by a failing check.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::main]
async fn main() -> Result<()> {
    let mut passed = 0;
    for (program, check) in STORIES {
        for wire in [Wire::Stdio, Wire::Http] {
            for era in [Era::Modern, Era::Legacy] {
                let name = format!("{program} on {wire:?}, {era:?}");
                let checked = tokio::time::timeout(PATIENCE, check(Stage { program, wire, era }));
                let checked = checked.await.context("the check timed out");
                checked.flatten().with_context(|| name.clone())?;
                eprintln!("ok  {name}");
                passed += 1;
            }
        }
    }
    eprintln!("{passed} passed, 0 failed");
    Ok(())
}
