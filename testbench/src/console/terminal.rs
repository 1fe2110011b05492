//! The terminal: `outlive inbox`, and `outlive console` of a store without a server.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::bench::Bench;
use super::packages::output;
use super::people::{ADA, ANN, BEN};
use super::site::Site;
use super::visitor::{API, APPROVAL, SAME_ORIGIN, Visitor, text};
use crate::hosts::caller::Caller;
use crate::row::Row;

const CONFIG: &str = r#"
[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{key}"]
arguments = { key = { type = "string" } }
approve = { by = ["ada", "ben"], links = true }
"#;

/// The checks of a row.
#[derive(Default)]
struct Checks {
    count: usize,
    failed: Vec<String>,
}

impl Checks {
    fn add(&mut self, name: &str, holds: bool) {
        self.count += 1;
        if !holds {
            self.failed.push(name.to_owned());
        }
    }

    fn row(self, case: &str, bar: &str) -> Row {
        let mut figure = format!("{} checks, {} failed", self.count, self.failed.len());
        if let Some(first) = self.failed.first() {
            figure.push_str(&format!("; first: {first}"));
        }
        Row::new(case, figure, bar, self.failed.is_empty())
    }
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let site = Site::start(bench, "terminal", ("sqlite", 1), CONFIG)?;
    Ok(vec![inbox(bench, &site)?, store_console(bench, &site)?])
}

/// Makes a gated call and returns its task.
fn call(site: &Site, key: &str) -> Result<String> {
    let caller = Caller::with_tasks(site.address(0)?, Some(ANN.token));
    let reply = caller.call("deploy", json!({"key": key}))?;
    let task = reply["result"]["taskId"].as_str();
    Ok(task.with_context(|| format!("the call is not a task: {reply}"))?.to_owned())
}

/// The approval request of a task.
fn request(site: &Site, task: &str) -> Result<Value> {
    site.visitor(0, ADA.deciding)?.read(&format!("inputs/{task}/{APPROVAL}"))
}

fn inbox(bench: &Bench, site: &Site) -> Result<Row> {
    let server = format!("http://{}/mcp", site.address(0)?);
    let outlive = |token: &str, words: &[&str]| -> Result<Output> {
        let mut command = Command::new(bench.program());
        command.arg("inbox").args(words).args(["--server", &server, "--token-env", "TOKEN"]);
        command.env("TOKEN", token).stdin(Stdio::null());
        command.output().context("could not start the program")
    };
    let (approved, denied, linked) =
        (call(site, "approved")?, call(site, "denied")?, call(site, "linked")?);
    let mut checks = Checks::default();
    let list = outlive(BEN.deciding, &["list", "--json"])?;
    let listed = String::from_utf8_lossy(&list.stdout).into_owned();
    checks.add("list", [&approved, &denied, &linked].iter().all(|task| listed.contains(*task)));
    let by_agent = outlive(BEN.token, &["approve", &approved, "--yes"])?;
    checks.add("an MCP token decides", !by_agent.status.success());
    let by_caller = outlive(ANN.deciding, &["approve", &approved, "--yes"])?;
    checks.add("the caller decides", !by_caller.status.success());
    checks.add("a vote was counted", request(site, &approved)?["state"] == "open");
    let wrong = outlive(BEN.deciding, &["approve", &approved, "--yes", "--digest", "0000"])?;
    checks.add("another digest is accepted", !wrong.status.success());
    let approve = outlive(BEN.deciding, &["approve", &approved[..12], "--yes"])?;
    checks.add("approve", approve.status.success());
    checks.add("no approval", request(site, &approved)?["state"] == "answered");
    let silent = outlive(BEN.deciding, &["deny", &denied, "--yes"])?;
    checks.add("a denial without a reason", !silent.status.success());
    let deny = ["deny", &denied, "--reason", "not before the freeze is over", "--yes"];
    checks.add("deny", outlive(BEN.deciding, &deny)?.status.success());
    let votes = request(site, &denied)?["votes"].clone();
    checks.add("the denial is not recorded", votes[0]["action"] == "decline");
    let link = outlive(BEN.deciding, &["link", &linked])?;
    let url = String::from_utf8_lossy(&link.stdout).into_owned();
    checks.add("link", link.status.success() && url.contains("/answer/"));
    Ok(checks
        .row("`outlive inbox`", "lists, approves, denies and links with a deciding token only"))
}

/// Opens the console of the store, without the server, and tries to decide.
fn store_console(bench: &Bench, site: &Site) -> Result<Row> {
    let task = call(site, "of the store")?;
    let mut command = Command::new(bench.program());
    command.args(["console", "--store", &site.database.url(), "--listen", "127.0.0.1:0"]);
    command.args(["--no-browser", "--json"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().context("could not start the program")?;
    let checked = check_store_console(&mut BufReader::new(output(&mut child)?), &task);
    // The process serves until it is ended.
    let _ = child.kill();
    let _ = child.wait();
    let mut checks = checked?;
    let now = request(site, &task)?;
    checks.add("a vote was counted", now["votes"].as_array().is_some_and(Vec::is_empty));
    checks.add("cancel", now["state"] == "withdrawn");
    Ok(checks.row("`outlive console --store`", "lists and cancels, decides nothing for people"))
}

fn check_store_console(said: &mut impl BufRead, task: &str) -> Result<Checks> {
    let mut line = String::new();
    said.read_line(&mut line)?;
    let said: Value = serde_json::from_str(&line).with_context(|| format!("`{line}`"))?;
    let url = text(&said["url"]).trim_start_matches("http://").to_owned();
    let (host, path) = url.split_once('/').context("the address has no path")?;
    let server = host.parse().with_context(|| format!("`{host}` is not an address"))?;
    let (visitor, path) = (Visitor::anonymous(server), format!("/{path}"));
    let mut checks = Checks::default();
    let first = visitor.get(&path)?;
    let session = first.cookie("outlive").context("the link opens no session")?;
    checks.add("the link works twice", visitor.get(&path)?.cookie("outlive").is_none());
    let operator = Visitor::with_session(server, &session);
    let list = operator.get("/console/tasks")?;
    checks.add("list of tasks", list.status == 200 && list.body.contains(&task[..6]));
    let page = operator.get(&format!("/console/inputs/{task}/{APPROVAL}"))?;
    checks.add("the page has a button to approve", !page.body.contains("value=\"accept\""));
    let request = operator.read(&format!("inputs/{task}/{APPROVAL}"))?;
    let me = operator.read("me")?;
    let post = |path: &str, body: &Value| {
        let json = ("Content-Type", "application/json");
        let headers = [SAME_ORIGIN, json, ("X-Form-Token", text(&me["form_token"]))];
        operator.request("POST", &format!("{API}/{path}"), &headers, &body.to_string())
    };
    let answer = json!({"digest": request["digest"], "action": "accept"});
    let reply = post(&format!("inputs/{task}/{APPROVAL}/answer"), &answer)?;
    checks.add("a decision for people", reply.status == 403);
    let reply = post(&format!("tasks/{task}/rerun"), &json!({}))?;
    checks.add("a task is started", reply.status >= 400);
    let reply = post(&format!("tasks/{task}/cancel"), &json!({}))?;
    checks.add("cancel", reply.status == 200);
    Ok(checks)
}
