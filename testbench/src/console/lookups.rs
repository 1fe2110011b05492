//! Lookups of foreign, unknown and invented objects, by every path, method and role.
//!
//! Each lookup of a foreign object must get the response of an unknown one: the same status, headers and bytes, after
//! the same statements.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::bench::Bench;
use super::people::{ADA, ANN, BEN, BOB, CID, DAN, EVA, Person};
use super::site::Site;
use super::statements::{Statements, unknown};
use super::visitor::{API, APPROVAL, FORM, SAME_ORIGIN, Visitor, form, text};
use crate::crash::random::Random;
use crate::hosts::caller::Caller;
use crate::row::Row;

const CONFIG: &str = r#"
[tasks]
max_store_bytes_per_caller = "256 MiB"

[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{key}", "secret-of-ann"]
arguments = { key = { type = "string" } }
approve = ["ben"]

[tools.render]
description = "Renders for a long time."
shell = true
command = 'echo secret-of-ann; sleep 3600'
arguments = { key = { type = "string" } }
task = "always"

[tools.echo]
description = "Prints a text."
command = ["echo", "{key}", "secret-of-ann"]
arguments = { key = { type = "string" } }
task = "always"
"#;

/// A text that only the caller and its approvers may see.
const SECRET: &str = "secret-of-ann";

/// Paths with a task. `ID` is its ID.
const PATHS: &[(&str, &str)] = &[
    ("GET", "/console/tasks/ID"),
    ("HEAD", "/console/tasks/ID"),
    ("GET", "/console/tasks/ID?view=journal"),
    ("GET", "/console/tasks/ID?view=result"),
    ("GET", "/console/tasks/ID/cancel"),
    ("POST", "/console/tasks/ID/cancel"),
    ("GET", "/console/tasks/ID/rerun"),
    ("POST", "/console/tasks/ID/purge"),
    ("GET", "/console/inputs/ID/%23approval"),
    ("POST", "/console/inputs/ID/%23approval"),
    ("PUT", "/console/tasks/ID"),
    ("GET", "/console/bulk/ID"),
    ("GET", "/console/api/v1/tasks/ID"),
    ("HEAD", "/console/api/v1/tasks/ID"),
    ("GET", "/console/api/v1/tasks/ID/journal"),
    ("GET", "/console/api/v1/tasks/ID/output"),
    ("GET", "/console/api/v1/tasks/ID/audit"),
    ("POST", "/console/api/v1/tasks/ID/cancel"),
    ("POST", "/console/api/v1/tasks/ID/retry"),
    ("POST", "/console/api/v1/tasks/ID/rerun"),
    ("POST", "/console/api/v1/tasks/ID/purge"),
    ("GET", "/console/api/v1/inputs/ID/%23approval"),
    ("POST", "/console/api/v1/inputs/ID/%23approval/answer"),
    ("POST", "/console/api/v1/inputs/ID/%23approval/link"),
    ("GET", "/console/api/v1/audit?task=ID"),
    ("DELETE", "/console/api/v1/tasks/ID"),
];

/// People without access. The server limits the changes of each person, so several are faster.
const STRANGERS: &[Person] = &[BOB, CID, DAN];

/// IDs of another form.
const INVENTED: [&str; 5] =
    ["zzzzzzzz", "A-b-c-d-e", "ZZZZ-0000", "task-of-ann", "00000000000000000000000000000000"];

/// A stranger with one credential.
struct Stranger {
    name: String,
    visitor: Visitor,
    /// Form token of the session, for the API.
    form_token: Option<String>,
}

/// Tasks of the caller: waiting for approval, running, ended.
struct Targets {
    ids: Vec<String>,
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for &(store, replicas) in bench.stores() {
        let site = Site::start(bench, "lookups", (store, replicas), CONFIG)?;
        let targets = Targets::create(&site)?;
        let count = bench.choose(10_000, 600) / bench.stores().len();
        rows.push(look_up(bench, &site, store, &targets, count)?);
        if store == "postgres" {
            rows.push(Statements::compare(&site, &targets.ids)?);
        }
    }
    Ok(rows)
}

fn look_up(
    bench: &Bench,
    site: &Site,
    store: &str,
    targets: &Targets,
    count: usize,
) -> Result<Row> {
    let mut random = Random::new(bench.seed);
    let strangers = strangers(site, bench.choose(STRANGERS, &STRANGERS[..1]))?;
    // The distinct responses of each way and stranger.
    let mut replies: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for number in 0..count {
        let (method, path) = PATHS[number % PATHS.len()];
        let stranger = &strangers[random.below(strangers.len())];
        let id = match random.below(3) {
            0 => targets.ids[random.below(targets.ids.len())].clone(),
            1 => unknown(&mut random),
            _ => INVENTED[random.below(INVENTED.len())].to_owned(),
        };
        let reply = stranger.look_up(method, &path.replace("ID", &id))?;
        let way = format!("{method} {path} by {}", stranger.name);
        replies.entry(way).or_default().insert(reply.replace(&id, "ID"));
    }
    let leaks = replies.values().flatten().filter(|reply| reply.contains(SECRET)).count();
    let several: Vec<_> = replies.iter().filter(|(_, replies)| replies.len() > 1).collect();
    let unchanged = targets.check(site);
    let mut figure = format!(
        "{count} lookups in {} ways: {leaks} leaks, {} ways with more than one response",
        replies.len(),
        several.len()
    );
    if let Some((way, replies)) = several.first() {
        let shown: Vec<String> =
            replies.iter().take(2).map(|reply| reply.chars().take(400).collect()).collect();
        figure.push_str(&format!("; {way}: {}", shown.join(" | ")));
    }
    if let Err(error) = &unchanged {
        figure.push_str(&format!("; a lookup changed a task: {error:#}"));
    }
    let is_met = leaks == 0 && several.is_empty() && unchanged.is_ok();
    let case = format!("lookups of foreign, unknown and invented IDs, {store}");
    Ok(Row::new(case, figure, "0 leaks: same status, headers and bytes, nothing changed", is_met))
}

/// Visitors without access to the tasks of the caller: other people, by session and by both kinds
/// of tokens, and visitors without a valid credential.
fn strangers(site: &Site, people: &[Person]) -> Result<Vec<Stranger>> {
    let server = site.address(0)?;
    let mut strangers = vec![Stranger::new("no credential", Visitor::anonymous(server), None)];
    let wrong = Visitor::with_token(server, "wrong-0123456789abcdef");
    strangers.push(Stranger::new("a wrong token", wrong, None));
    for Person { name, token, deciding } in people {
        for (kind, token) in [("MCP token", token), ("deciding token", deciding)] {
            let visitor = Visitor::with_token(server, token);
            strangers.push(Stranger::new(&format!("{name}, {kind}"), visitor, None));
        }
        let session = Visitor::sign_in(server, deciding)?;
        let me = session.read("me")?;
        let form_token = me["form_token"].as_str().map(str::to_owned);
        strangers.push(Stranger::new(&format!("{name}, session"), session, form_token));
    }
    Ok(strangers)
}

impl Stranger {
    fn new(name: &str, visitor: Visitor, form_token: Option<String>) -> Self {
        Self { name: name.to_owned(), visitor, form_token }
    }

    /// Requests a path and returns the whole response as text. Waits while the server rejects more
    /// changes, because that response depends on the time.
    fn look_up(&self, method: &str, path: &str) -> Result<String> {
        let json = r#"{"digest":"0","action":"accept"}"#;
        let mut headers = vec![SAME_ORIGIN];
        let is_api = path.starts_with(API);
        let body = match (method, is_api) {
            ("POST", true) if path.ends_with("/answer") => json.to_owned(),
            ("POST", true) => "{}".to_owned(),
            ("POST", false) => form(&[("action", "accept"), ("digest", "0")]),
            _ => String::new(),
        };
        headers.push(if is_api { ("Content-Type", "application/json") } else { FORM });
        headers.extend(self.form_token.as_deref().map(|token| ("X-Form-Token", token)));
        loop {
            let reply = self.visitor.request(method, path, &headers, &body)?;
            if reply.status != 429 {
                let mut headers = reply.headers.clone();
                headers.sort();
                let headers: Vec<_> =
                    headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                return Ok(format!("{}\n{}\n\n{}", reply.status, headers.join("\n"), reply.body));
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

impl Targets {
    fn create(site: &Site) -> Result<Self> {
        let caller = Caller::with_tasks(site.address(0)?, Some(ANN.token));
        let mut ids = Vec::new();
        for tool in ["deploy", "render", "echo"] {
            let reply = caller.call(tool, json!({"key": format!("{tool} {SECRET}")}))?;
            let id = reply["result"]["taskId"].as_str();
            ids.push(id.with_context(|| format!("`{tool}` is not a task: {reply}"))?.to_owned());
        }
        // The operator, the viewer and the approver see the objects, so the paths are right.
        for person in [ADA, EVA, BEN] {
            let visitor = site.visitor(0, person.deciding)?;
            visitor.read(&format!("inputs/{}/{APPROVAL}", ids[0]))?;
        }
        Ok(Self { ids })
    }

    /// Checks that the approval request is open and the running task still runs.
    fn check(&self, site: &Site) -> Result<()> {
        let operator = site.visitor(0, ADA.deciding)?;
        let request = operator.read(&format!("inputs/{}/{APPROVAL}", self.ids[0]))?;
        ensure!(request["state"] == "open", "the approval request is {}", request["state"]);
        let running = operator.read(&format!("tasks/{}", self.ids[1]))?;
        ensure!(text(&running["state"]) == "running", "a task is {}", running["state"]);
        Ok(())
    }
}
