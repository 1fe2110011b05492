//! The answer page: a browser answers the input requests of handlers through links.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::runtime::Runtime;
use xtask::process;

use super::asking_server::{Pages, result};
use super::bench::Bench;
use super::packages::browser;
use crate::conformance::suite::{self, Suite};
use crate::row::Row;

/// Names of the views in `site/answer.mjs`. Each answers its own task.
const VIEWS: [&str; 4] = ["light", "dark", "phone", "phone-dark"];

/// Result of the tool with the values that the script types.
const RESULT: &str = "as planned, 3, true, Large, Some([Mail]), None, None";

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let Some(chromium) = browser()? else { return Ok(Vec::new()) };
    let root = process::root();
    let site = root.join("site");
    suite::install_once(&site, suite::LENIENTLY)?;
    let node = Suite::ready(&root.join("conformance"))?.node().to_owned();
    let runtime = Runtime::new()?;
    let (pages, mut tasks) = (runtime.block_on(Pages::start())?, Vec::new());
    let mut views = Vec::new();
    for name in VIEWS {
        let (task, form) = runtime.block_on(pages.ask("deploy"))?;
        let (_, visit) = runtime.block_on(pages.ask("visit"))?;
        views.push(json!({"name": name, "form": form, "visit": visit}));
        tasks.push(task);
    }
    let settings = json!({
        "chromium": chromium, "views": views, "unknown": pages.address("unknown"),
        "screenshots": bench.screenshots,
    });
    let mut script = Command::new(node);
    script.arg("answer.mjs").arg(settings.to_string()).current_dir(&site);
    process::run(&mut script).context("the answer page has defects")?;
    for (task, view) in tasks.into_iter().zip(VIEWS) {
        let said = runtime.block_on(result(task))?;
        ensure!(said == RESULT, "the answer of the view {view} is `{said}` instead of `{RESULT}`");
    }
    let figure = format!("{} answers by browser, 0 defects", VIEWS.len());
    let bar = "0 axe findings, 0 other requests, every answer reaches its handler";
    Ok(vec![Row::new("answer page, light, dark and narrow", figure, bar, true)])
}
