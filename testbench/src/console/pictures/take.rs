//! Takes the pictures: writes the store, starts the server twice, and runs the browser.

use std::path::Path;

use anyhow::{Context, Result};
use outlive::store::{MetricStore, SqliteStore, TaskId};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::approvals::{self, WaitingCall};
use super::past::{move_back, now};
use super::{day, migration, tasks, workers};
use crate::console::bench::Bench;
use crate::console::packages::browser;
use crate::console::people::ADA;
use crate::console::site::Site;
use crate::console::visitor::{APPROVAL, Visitor};
use crate::row::Row;

/// Maximum height of a picture, in pixels.
const MAX_HEIGHT: u32 = 1_100;
/// Maximum height of the overview, whose last table has the workers.
const MAX_OVERVIEW: u32 = 1_600;

pub(in crate::console) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let folder = bench.pictures.as_ref().context("`--pictures` names no folder")?;
    let chromium = browser()?.context("the pictures need a browser")?;
    let packages = bench.packages()?;
    let site = Site::new(bench, "pictures", ("sqlite", 1), approvals::CONFIG)?;
    approvals::add_build_server(&site)?;
    let (path, runtime) = (site.folder().join("tasks.db"), Runtime::new()?);
    let task = runtime.block_on(write_before(&path))?;
    site.launch_all()?;
    let waiting = approvals::make(&site)?;
    site.kill(0)?;
    runtime.block_on(write_after(&path, &waiting))?;
    // From here the pictures have 30 seconds, see `workers::replace`.
    site.launch(0)?;
    runtime.block_on(workers::replace(&path))?;
    let server = site.address(0)?;
    let ada = Visitor::sign_in(server, ADA.deciding)?;
    let settings = json!({
        "chromium": chromium, "origin": format!("http://{server}"), "session": ada.session(),
        "folder": folder, "pages": pages(&task, &approvals::deployment(&waiting)?.task),
        "private": [server.to_string(), bench.folder().display().to_string()],
    });
    packages.rows("pictures.mjs", &settings)
}

/// Writes the tasks that are older than all calls of the server. Returns the migration.
async fn write_before(path: &Path) -> Result<TaskId> {
    tasks::approved_deployment(path).await?;
    tasks::quarantined_reports(path).await?;
    let task = migration::write(path).await?;
    tasks::waiting_report(path).await?;
    Ok(task)
}

/// Moves the calls of the server back, and writes the rest of the store.
async fn write_after(path: &Path, waiting: &[WaitingCall]) -> Result<()> {
    for WaitingCall { task, age } in waiting {
        move_back(path, task, *age)?;
    }
    let store = SqliteStore::open(path)?;
    tasks::running_tasks(&store).await?;
    store.add_metrics(&day::rows(now()?)).await?;
    workers::clear(&store).await?;
    Ok(())
}

/// The pictures: name, path and maximum height. The overview is first, because it has the workers.
fn pages(task: &TaskId, deployment: &TaskId) -> Value {
    json!([
        {"name": "overview", "path": "/console/overview", "height": MAX_OVERVIEW},
        {"name": "inbox", "path": "/console/", "height": MAX_HEIGHT},
        {
            "name": "approval", "path": format!("/console/inputs/{deployment}/{APPROVAL}"),
            "height": MAX_HEIGHT,
        },
        {"name": "task", "path": format!("/console/tasks/{task}"), "height": MAX_HEIGHT},
    ])
}
