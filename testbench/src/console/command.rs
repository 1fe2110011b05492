//! The command: starts the server, has a browser answer, and checks the results of the tasks.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio::runtime::Runtime;
use xtask::args::Args;
use xtask::packages::{self, CHROMIUM};
use xtask::process;

use super::server::{Pages, result};
use crate::conformance::suite::{self, Suite};

/// Names of the views in `site/answer.mjs`. Each answers its own task.
const VIEWS: [&str; 4] = ["light", "dark", "phone", "phone-dark"];

/// Result of the tool with the values that the script types.
const RESULT: &str = "as planned, 3, true, Large, Some([Mail]), None, None";

pub(crate) fn run(mut args: Args) -> Result<()> {
    let screenshots = args.value("--screenshots")?;
    // Every step of the tests is built with them; this one needs nothing that is built.
    args.flag("--with-tests");
    args.finish()?;
    let root = process::root();
    let site = root.join("site");
    suite::install_once(&site, suite::LENIENTLY)?;
    let node = Suite::ready(&root.join("conformance"))?.node().to_owned();
    let chromium = packages::ensure(&CHROMIUM)?;
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
        "chromium": chromium, "views": views, "unknown": pages.address("unknown"), "screenshots": screenshots,
    });
    let mut script = Command::new(node);
    script.arg("answer.mjs").arg(settings.to_string()).current_dir(&site);
    process::run(&mut script).context("the answer page has defects")?;
    for (task, view) in tasks.into_iter().zip(VIEWS) {
        let said = runtime.block_on(result(task))?;
        ensure!(said == RESULT, "the answer of the view {view} is `{said}` instead of `{RESULT}`");
    }
    println!("console: {} answers by browser", VIEWS.len());
    Ok(())
}
