//! Decisions with an MCP token alone: an agent has such a token, so it must decide nothing.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::bench::Bench;
use super::people::{ADA, ANN, BEN, Person};
use super::site::Site;
use super::visitor::{APPROVAL, Visitor, argument, text};
use crate::crash::random::Random;
use crate::hosts::caller::Caller;
use crate::row::Row;

const CONFIG: &str = r#"
[hosts]
answers = ["tool"]
call_timeout = "3s"

[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{key}"]
arguments = { key = { type = "string" } }
approve = { by = ["ada", "ben"], max_open = 200 }

[tools.erase]
description = "Erases a volume."
command = ["@RECORD@", "{key}"]
arguments = { key = { type = "string" } }
approve = { by = ["ada", "ben"], count = 2, max_open = 200 }
"#;

/// Open approval requests that the attempts target.
const REQUESTS: usize = 10;

const TIMEOUT: Duration = Duration::from_secs(10);

/// An attempt to decide. Returns whether the server said that it counts.
type Attempt = fn(&Target<'_>) -> Result<bool>;

/// One open request, and the person whose MCP token is used.
struct Target<'s> {
    site: &'s Site,
    person: Person,
    request: &'s Value,
}

/// Every way to decide that an MCP token reaches.
const ATTEMPTS: &[(&str, Attempt)] = &[
    ("API, accept", |it| it.answer("accept")),
    ("API, decline", |it| it.answer("decline")),
    ("API, answer link", |it| {
        let reply = it.visitor()?.post(&format!("{}/link", it.path()), &json!({}))?;
        Ok(reply.status == 200)
    }),
    ("page", |it| {
        let fields = [("digest", text(&it.request["digest"])), ("action", "accept")];
        let reply = it.visitor()?.submit(&format!("/console/{}", it.path()), &fields)?;
        Ok(reply.status < 400 && reply.header("location").is_none_or(|to| !to.contains("in?")))
    }),
    ("sign-in", |it| {
        let reply = Visitor::try_sign_in(it.site.address(0)?, it.person.token)?;
        Ok(reply.cookie("outlive").is_some())
    }),
    ("tasks/update", |it| {
        let accept = json!({"#approval": {"action": "accept", "content": {}}});
        let params = json!({"taskId": it.request["task"], "inputResponses": accept});
        it.caller(true)?.request("tasks/update", params)?;
        // The state of the request tells whether the response counts.
        Ok(false)
    }),
    ("task_answer", |it| {
        let arguments = json!({
            "task": it.request["task"], "input_request": "#approval", "action": "accept",
            "content": {},
        });
        it.caller(false)?.call("task_answer", arguments)?;
        Ok(false)
    }),
    ("the same call again", |it| {
        let arguments = json!({"key": argument(it.request, "key")});
        it.caller(true)?.call(text(&it.request["tool"]), arguments)?;
        Ok(false)
    }),
    ("rerun of the task", |it| {
        // A rerun creates another task, which needs its own approval.
        let path = format!("tasks/{}/rerun", text(&it.request["task"]));
        it.visitor()?.post(&path, &json!({}))?;
        Ok(false)
    }),
];

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let site = Site::start(bench, "tokens", ("sqlite", 1), CONFIG)?;
    let caller = Caller::with_tasks(site.address(0)?, Some(ANN.token));
    for number in 0..REQUESTS {
        let tool = if number % 2 == 0 { "deploy" } else { "erase" };
        let key = format!("key-{number}");
        let reply = caller.call(tool, json!({"key": key}))?;
        ensure!(reply["result"]["taskId"].is_string(), "`{tool}` is not a task: {reply}");
    }
    let reader = site.visitor(0, ADA.deciding)?;
    let inbox = reader.read("inbox?limit=200")?;
    let requests: Vec<Value> = inbox["requests"]
        .as_array()
        .context("the inbox has no list")?
        .iter()
        .map(|item| reader.read(&format!("inputs/{}/{APPROVAL}", text(&item["task"]))))
        .collect::<Result<_>>()?;
    ensure!(requests.len() == REQUESTS, "the inbox has {} requests", requests.len());
    let (tries, mut random) = (bench.choose(1_000, 100), Random::new(bench.seed));
    let mut said = Vec::new();
    for number in 0..tries {
        let (name, attempt) = ATTEMPTS[number % ATTEMPTS.len()];
        let person = [ADA, BEN, ANN][random.below(3)];
        let request = &requests[random.below(requests.len())];
        if attempt(&Target { site: &site, person, request })? {
            said.push(format!("{name} by {}", person.name));
        }
    }
    let mut rows = vec![verdict(&site, &requests, tries, &said)?];
    rows.push(deciding_token_at_endpoint(&site)?);
    Ok(rows)
}

/// Checks that every request is still open, without a vote, and that nothing ran.
fn verdict(site: &Site, requests: &[Value], tries: usize, said: &[String]) -> Result<Row> {
    let reader = site.visitor(0, ADA.deciding)?;
    let mut decided = 0;
    for request in requests {
        let now = reader.read(&format!("inputs/{}/{APPROVAL}", text(&request["task"])))?;
        let votes = now["votes"].as_array().map_or(0, Vec::len);
        decided += usize::from(now["state"] != "open" || votes > 0);
    }
    let ran = site.executions.count()?;
    let mut figure = format!(
        "{tries} attempts in {} ways: {decided} decisions, {} said to count, {} runs",
        ATTEMPTS.len(),
        said.len(),
        ran.len()
    );
    if let Some(first) = said.first() {
        figure.push_str(&format!("; first: {first}"));
    }
    let is_met = decided == 0 && said.is_empty() && ran.is_empty();
    Ok(Row::new("decisions with an MCP token alone", figure, format!("0 of {tries}"), is_met))
}

/// Checks that a deciding token opens no MCP endpoint.
fn deciding_token_at_endpoint(site: &Site) -> Result<Row> {
    let mut accepted = 0;
    for person in [ADA, BEN, ANN] {
        let caller = Caller::modern(site.address(0)?, Some(person.deciding));
        let response = caller.send(&caller.framed("tools/list", json!({})), TIMEOUT)?;
        accepted += usize::from(response.status != 401);
    }
    let figure = format!("{accepted} of 3 accepted");
    Ok(Row::new("deciding tokens at the MCP endpoint", figure, "401 for each", accepted == 0))
}

impl Target<'_> {
    fn visitor(&self) -> Result<Visitor> {
        self.site.visitor(0, self.person.token)
    }

    fn caller(&self, has_tasks: bool) -> Result<Caller> {
        let (server, token) = (self.site.address(0)?, Some(self.person.token));
        Ok(match has_tasks {
            true => Caller::with_tasks(server, token),
            false => Caller::modern(server, token),
        })
    }

    fn path(&self) -> String {
        format!("inputs/{}/{APPROVAL}", text(&self.request["task"]))
    }

    fn answer(&self, action: &str) -> Result<bool> {
        let answer = json!({
            "digest": self.request["digest"], "action": action, "reason": "an agent says so",
        });
        let reply = self.visitor()?.post(&format!("{}/answer", self.path()), &answer)?;
        Ok(reply.status == 200)
    }
}
