//! The pages while the store is unavailable: the original request can be repeated, and typed text is not lost.

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::bench::Bench;
use super::packages::browser;
use super::people::{ANN, BEN};
use super::site::Site;
use super::visitor::{APPROVAL, Reply, Visitor, text};
use crate::hosts::caller::Caller;
use crate::row::Row;

const CONFIG: &str = r#"
[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{key}"]
arguments = { key = { type = "string" } }
approve = ["ben"]
"#;

/// A text that the person types before the store fails.
const REASON: &str = "not before the freeze is over";

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // A SQLite store has no process that can fail, so a short run uses PostgreSQL here too.
    let mut site = Site::start(bench, "unavailable", ("postgres", 1), CONFIG)?;
    let caller = Caller::with_tasks(site.address(0)?, Some(ANN.token));
    let reply = caller.call("deploy", json!({"key": "key"}))?;
    let task = text(&reply["result"]["taskId"]).to_owned();
    let path = format!("/console/inputs/{task}/{APPROVAL}");
    let ben = Visitor::sign_in(site.address(0)?, BEN.deciding)?;
    let page = ben.get(&path)?;
    let token = page.field("form_token").context("the page has no form")?;
    let digest = page.field("digest").context("the page has no digest")?;
    let fields =
        [("form_token", &*token), ("digest", &*digest), ("reason", REASON), ("action", "decline")];
    site.database.kill()?;
    let pages = ["", "tasks", "overview", "audit"].map(|page| format!("/console/{page}"));
    let mut wrong = Vec::new();
    for path in &pages {
        let reply = ben.get(path)?;
        let is_clear = reply.status == 503 && reply.header("retry-after").is_some();
        if !is_clear || !reply.body.contains("Retry") {
            wrong.push(format!("{path} returned {}", reply.status));
        }
    }
    let reply = ben.submit(&path, &fields)?;
    let keeps_text = reply.status == 503 && reply.field("reason").as_deref() == Some(REASON);
    if !keeps_text {
        wrong.push(format!("the form returned {} without its text", reply.status));
    }
    let mut rows = in_browser(bench, &ben, &path, &page)?;
    site.database.restart()?;
    let decided = decide_again(&ben, &path, &fields)?;
    let mut figure = format!("{} wrong, {decided} after the store is back", wrong.len());
    if let Some(first) = wrong.first() {
        figure.push_str(&format!("; first: {first}"));
    }
    let is_met = wrong.is_empty() && decided == "answered";
    let bar = "503 with Retry-After and the typed text; the same form works later";
    rows.push(Row::new("pages while the store is unavailable", figure, bar, is_met));
    Ok(rows)
}

/// Opens a page in Chromium, and denies a call on a page that was open before, with axe-core.
fn in_browser(bench: &Bench, ben: &Visitor, path: &str, page: &Reply) -> Result<Vec<Row>> {
    let Some(chromium) = browser()? else { return Ok(Vec::new()) };
    let read = json!({"name": "unavailable", "person": "ben", "path": "/console/", "status": 503});
    let submitted = json!({
        "name": "unavailable-form", "person": "ben", "path": path, "html": page.body,
        "type": {"#reason": REASON}, "press": "button[value=decline]", "status": 503,
        "fields": {"reason": REASON, "action": "decline"},
    });
    let settings = json!({
        "chromium": chromium, "origin": format!("http://{}", ben.server()),
        "what": "pages and a submitted form while the store is unavailable",
        "sessions": {"ben": ben.session()}, "states": [read, submitted],
        "screenshots": bench.screenshots, "short": bench.is_short,
    });
    bench.packages()?.rows("pages.mjs", &settings)
}

/// Repeats the form until the server has connected again. Returns the state of the request.
fn decide_again(ben: &Visitor, path: &str, fields: &[(&str, &str)]) -> Result<String> {
    let started = std::time::Instant::now();
    loop {
        let reply = ben.submit(path, fields)?;
        if reply.status != 503 {
            ensure!(reply.status == 303, "the form returned {}: {}", reply.status, reply.body);
            let request = ben.read(path.trim_start_matches("/console/"))?;
            return Ok(text(&request["state"]).to_owned());
        }
        ensure!(started.elapsed().as_secs() < 30, "the server does not connect again");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}
