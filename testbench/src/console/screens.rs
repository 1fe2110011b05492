//! Every screen and state in Chromium, with axe-core.
//!
//! This file brings a server into all states; `conformance/console/screens.mjs` opens the pages.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use outlive::store::TaskState;
use serde_json::{Map, Value, json};
use xtask::process;

use super::bench::Bench;
use super::packages::browser;
use super::people::{ADA, ALL, ANN, BEN, BOB, EVA, Person};
use super::site::Site;
use super::visitor::{APPROVAL, Visitor, text};
use crate::hosts::caller::Caller;
use crate::row::Row;

const CONFIG: &str = r#"
[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{version}", "{env}"]
arguments = { version = { type = "string" }, env = { type = "string", enum = ["test", "prod"] }, token = { type = "string", default = "", secret = true } }
env = { TOKEN = "{token}" }
tags = { env = "{env}" }
approve = { by = ["ada", "ben", "cid"], max_open = 200, links = true, decision_timeout = "8h" }

[tools.migrate]
description = "Copies all tables."
command = ["@RECORD@", "{tables}"]
arguments = { tables = { type = "string" } }

[tools.render]
description = "Renders frames."
shell = true
command = 'for frame in $(seq 1 20); do echo "frame $frame of 240"; done; echo "frame 31 of 240" >&2; sleep 3600'
task = "always"

[tools.fail]
description = "Fails."
shell = true
command = 'echo "the region is unknown" >&2; exit 3'
task = "always"

[tools.survey]
description = "Asks for a quarter."
shell = true
interactive = true
task = "always"
command = '''
echo '{"input": "quarter", "message": "Which quarter?", "fields": {"quarter": {"type": "string", "title": "Quarter"}}}' >&3
read -r response <&4
'''

[notify.dead]
url = "http://127.0.0.1:9/nothing"
secret_env = "HOOK_SECRET"
network = "local"
events = ["task.ended"]
tools = ["fail"]
"#;

/// The tools of a server without tokens.
const LOCAL: &str = r#"
[tools.deploy]
description = "Deploys a version."
command = ["@RECORD@", "{version}"]
arguments = { version = { type = "string" } }
approve = "caller"
"#;

/// Time for the tasks to reach their states.
const SETTLE: Duration = Duration::from_secs(30);

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    let Some(chromium) = browser()? else { return Ok(Vec::new()) };
    let packages = bench.packages()?;
    let mut site = Site::new(bench, "screens", ("sqlite", 1), CONFIG)?;
    site.set_variable("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
    let entries = bench.choose(10_000, 1_000);
    let mut seed = Command::new(bench.program_beside("seed-store")?);
    seed.arg(site.database.url()).args(["3000", "--console", "--journal", &entries.to_string()]);
    process::run(&mut seed)?;
    site.launch_all()?;
    let server = site.address(0)?;
    let ada = site.visitor(0, ADA.deciding)?;
    let (open, link) = (prepare(&site, &ada)?, link(&site)?);
    let sessions: Result<Map<String, Value>> = [ADA, ANN, BOB, BEN, EVA]
        .into_iter()
        .map(|person| {
            let visitor = Visitor::sign_in(server, person.deciding)?;
            Ok((person.name.to_owned(), json!(visitor.session())))
        })
        .collect();
    let named = |token: fn(&Person) -> &'static str| -> Map<String, Value> {
        ALL.iter().map(|person| (person.name.to_owned(), json!(token(person)))).collect()
    };
    let settings = json!({
        "chromium": chromium, "origin": format!("http://{server}"), "sessions": sessions?,
        "tokens": named(|person| person.token), "deciding": named(|person| person.deciding),
        "states": states(&ada, &open)?, "screenshots": bench.screenshots, "short": bench.is_short,
        "link": link,
        "journal": {"path": format!("/console/tasks/{}?view=journal", "7".repeat(32)), "entries": entries},
    });
    let mut rows = packages.rows("screens.mjs", &settings)?;
    rows.extend(sign_in_on_this_machine(bench, &chromium)?);
    Ok(rows)
}

/// Opens the sign-in page of a server without tokens, with axe-core. It names a command.
fn sign_in_on_this_machine(bench: &Bench, chromium: &Path) -> Result<Vec<Row>> {
    let site = Site::new(bench, "screens-local", ("sqlite", 1), LOCAL)?.without_tokens()?;
    site.launch_all()?;
    let server = site.address(0)?;
    let page = Visitor::anonymous(server).get("/console/in")?;
    ensure!(page.body.contains("<code>outlive console</code>"), "no command in {}", page.body);
    let state = |name: &str, path: &str, status: u16| json!({"name": name, "person": "visitor", "path": path, "heading": "Sign in", "status": status});
    let settings = json!({
        "chromium": chromium, "origin": format!("http://{server}"), "sessions": {},
        "what": "sign-in page of a server without tokens",
        "states": [state("sign-in-local", "/console/in", 200), state("sign-in-local-next", "/console/tasks", 200)],
        "screenshots": bench.screenshots, "short": bench.is_short,
    });
    bench.packages()?.rows("pages.mjs", &settings)
}

/// Requests and tasks in the states that only a running server creates.
struct Open {
    /// A task whose approval is open.
    waiting: String,
    /// A task whose call was denied.
    denied: String,
    /// A task that a handler asks about.
    asking: String,
}

fn prepare(site: &Site, ada: &Visitor) -> Result<Open> {
    let ann = Caller::with_tasks(site.address(0)?, Some(ANN.token));
    let call = |tool: &str, arguments: Value| -> Result<String> {
        let reply = ann.call(tool, arguments)?;
        let task = reply["result"]["taskId"].as_str();
        Ok(task.with_context(|| format!("`{tool}` is not a task: {reply}"))?.to_owned())
    };
    let deploy = |version: &str| {
        let token = "a secret of the caller";
        call("deploy", json!({"version": version, "env": "prod", "token": token}))
    };
    let approved = deploy("1.4.1")?;
    vote(site, &approved, true)?;
    let (waiting, denied) = (deploy("1.4.2")?, deploy("1.4.3")?);
    deploy("1.4.2")?;
    deploy(&"a long version ".repeat(200))?;
    vote(site, &denied, false)?;
    let asking = call("survey", json!({}))?;
    call("render", json!({}))?;
    call("fail", json!({}))?;
    for (task, state) in
        [(&approved, "completed"), (&denied, "failed"), (&asking, "input-required")]
    {
        wait_for(ada, task, state)?;
    }
    Ok(Open { waiting, denied, asking })
}

fn vote(site: &Site, task: &str, accepts: bool) -> Result<()> {
    let ben = site.visitor(0, BEN.deciding)?;
    let request = ben.read(&format!("inputs/{task}/{APPROVAL}"))?;
    let reply = ben.vote(&request, accepts)?;
    ensure!(reply.status == 200, "a vote was rejected with {}: {}", reply.status, reply.body);
    Ok(())
}

fn wait_for(visitor: &Visitor, task: &str, state: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let now = visitor.read(&format!("tasks/{task}"))?;
        if now["state"] == state {
            return Ok(());
        }
        if started.elapsed() > SETTLE {
            bail!("a task is {} instead of {state}", now["state"]);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// An answer link that no script uses.
fn link(site: &Site) -> Result<Value> {
    let ann = Caller::with_tasks(site.address(0)?, Some(ANN.token));
    let reply = ann.call("deploy", json!({"version": "by link", "env": "prod"}))?;
    let task = text(&reply["result"]["taskId"]);
    let path = format!("inputs/{task}/{APPROVAL}/link");
    let reply = site.visitor(0, BEN.deciding)?.post(&path, &json!({}))?.json();
    let (_, token) = text(&reply["url"]).split_once("/answer/").context("no answer link")?;
    Ok(json!({"task": task, "path": format!("/answer/{token}")}))
}

/// The pages: name, person and path. `WAITING`, `DENIED`, `ASKING` and `LONG` are tasks.
const PAGES: &[(&str, &str, &str)] = &[
    ("inbox", "ada", ""),
    ("inbox-empty", "bob", ""),
    ("inbox-own", "ann", ""),
    ("approval", "ada", "inputs/WAITING/%23approval"),
    ("approval-own", "ann", "inputs/WAITING/%23approval"),
    ("approval-viewer", "eva", "inputs/WAITING/%23approval"),
    ("approval-settled", "ada", "inputs/DENIED/%23approval"),
    ("form", "ann", "inputs/ASKING/quarter"),
    ("tasks", "ada", "tasks"),
    ("tasks-of-person", "ann", "tasks"),
    ("tasks-filtered", "ada", "tasks?state=quarantined&tool=deploy"),
    ("tasks-empty", "ada", "tasks?tool=unknown&state=failed"),
    ("tasks-invalid", "ada", "tasks?since=never"),
    ("task-output", "ada", "tasks/WAITING?view=output"),
    ("task-journal", "ada", "tasks/WAITING?view=journal"),
    ("task-arguments", "ada", "tasks/WAITING?view=arguments"),
    ("task-result", "ada", "tasks/WAITING?view=result"),
    ("task-audit", "ada", "tasks/WAITING?view=audit"),
    ("task-long-journal", "ada", "tasks/LONG?view=journal"),
    ("task-search", "ada", "tasks/LONG?view=journal&find=copy%2F99"),
    ("task-entry", "ada", "tasks/LONG?view=journal&key=copy%2F7"),
    ("confirm-cancel", "ada", "tasks/WAITING/cancel"),
    ("confirm-rerun", "ada", "tasks/WAITING/rerun"),
    ("confirm-purge", "ada", "tasks/WAITING/purge"),
    ("confirm-retry", "ada", "tasks/WAITING/retry"),
    ("bulk", "ada", "bulk?action=retry&state=quarantined"),
    ("bulk-empty", "ada", "bulk?action=cancel&tool=unknown"),
    ("overview", "ada", "overview"),
    ("overview-viewer", "eva", "overview"),
    ("audit", "ada", "audit"),
    ("audit-of-person", "ann", "audit"),
    ("audit-empty", "ada", "audit?action=unknown"),
    ("settings", "ada", "settings"),
    ("not-found", "ada", "tasks/unknown"),
    ("forbidden", "bob", "overview"),
    ("sign-in", "visitor", "in"),
];

/// The pages to open, with texts to type and a button to press where a form has errors.
fn states(ada: &Visitor, open: &Open) -> Result<Vec<Value>> {
    let state = |(name, person, path): (&str, &str, &str)| {
        let path = path
            .replace("WAITING", &open.waiting)
            .replace("DENIED", &open.denied)
            .replace("ASKING", &open.asking)
            .replace("LONG", &"7".repeat(32));
        json!({"name": name, "person": person, "path": format!("/console/{path}")})
    };
    let mut states: Vec<Value> = PAGES.iter().copied().map(state).collect();
    for name in TaskState::ALL.map(TaskState::as_str) {
        let list = ada.read(&format!("tasks?state={name}&limit=1"))?;
        // No task stays queued while a worker is idle.
        if let Some(task) = list["tasks"][0]["id"].as_str() {
            states.push(state((&format!("task-{name}"), "ada", &format!("tasks/{task}"))));
        }
    }
    let mut denial = state(("approval-errors", "ada", "inputs/WAITING/%23approval"));
    denial["press"] = json!("button[value=decline]");
    let mut wrong = state(("sign-in-wrong", "visitor", "in"));
    wrong["press"] = json!("button.primary");
    wrong["type"] = json!({"#token": "wrong"});
    let mut nameless = state(("bulk-errors", "ada", "bulk?action=retry&state=quarantined"));
    nameless["press"] = json!("form.narrow button");
    states.extend([denial, wrong, nameless]);
    Ok(states)
}
