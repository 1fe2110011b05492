//! The calls of the shop that wait for an approval, on a real server.

use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use outlive::store::TaskId;
use serde_json::{Value, json};

use crate::console::people::{ANN, BEN, CID};
use crate::console::site::Site;
use crate::console::visitor::APPROVAL;
use crate::hosts::caller::Caller;

/// The tools of the shop. Their programs do not exist, and no call gets all its votes.
pub(super) const CONFIG: &str = r#"
[tools.deploy]
description = "Deploys a version of the shop."
command = ["/opt/shop/bin/deploy", "{version}", "{env}"]
arguments = { env = { type = "string", enum = ["staging", "prod"] }, version = { type = "string" } }
tags = { env = "{env}" }
approve = { by = ["ada", "ben", "cid"], count = 2, decision_timeout = "8h" }

[tools.migrate_orders]
description = "Copies the orders of a region to another schema."
command = ["/opt/shop/bin/migrate-orders", "{from}", "{to}", "{region}"]
arguments = { from = { type = "string" }, region = { type = "string" }, to = { type = "string" } }
tags = { region = "{region}" }
approve = { by = ["ada", "cid"], decision_timeout = "12h" }

[tools.refund]
description = "Refunds an order."
command = ["/opt/shop/bin/refund", "{order}", "{amount}", "{currency}"]
arguments = { amount = { type = "string" }, currency = { type = "string" }, order = { type = "string" } }
tags = { order = "{order}" }
approve = { by = ["ada", "cid"], decision_timeout = "1h" }

[tools.render_report]
description = "Renders a report of a quarter."
command = ["/opt/shop/bin/render-report", "{kind}", "{quarter}"]
arguments = { kind = { type = "string" }, quarter = { type = "string" } }
"#;

/// Token of the build server, which only calls.
const CI_TOKEN: &str = "ci-mcp-0123456789abcdef";

/// A call that waits for its approval.
pub(super) struct WaitingCall {
    pub(super) task: TaskId,
    /// Time since the call in the pictures.
    pub(super) age: Duration,
}

/// Adds the build server to the callers of a site.
pub(super) fn add_build_server(site: &Site) -> Result<()> {
    let mut tokens = OpenOptions::new().append(true).open(site.folder().join("tokens"))?;
    Ok(writeln!(tokens, "ci {CI_TOKEN}")?)
}

/// Makes the calls, oldest first. The second one is a deployment with a vote.
pub(super) fn make(site: &Site) -> Result<Vec<WaitingCall>> {
    let orders = |region: &str| json!({"from": "orders_v1", "region": region, "to": "orders_v2"});
    let refund =
        |order: &str, amount: &str| json!({"amount": amount, "currency": "EUR", "order": order});
    let version = |version: &str, env: &str| json!({"env": env, "version": version});
    let calls = [
        (BEN.token, "migrate_orders", orders("us"), 110 * 60),
        (CI_TOKEN, "deploy", version("1.4.2", "prod"), 18 * 60),
        (ANN.token, "refund", refund("A-20817", "249.90"), 6 * 60),
        (BEN.token, "deploy", version("1.5.0-rc.1", "staging"), 2 * 60 + 10),
        (ANN.token, "refund", refund("A-20822", "89.00"), 44),
    ];
    let mut waiting = Vec::new();
    for (token, tool, arguments, seconds) in calls {
        let task = call(site, token, tool, arguments)?;
        waiting.push(WaitingCall { task, age: Duration::from_secs(seconds) });
    }
    approve(site, &deployment(&waiting)?.task)?;
    Ok(waiting)
}

/// Returns the deployment with a vote.
pub(super) fn deployment(waiting: &[WaitingCall]) -> Result<&WaitingCall> {
    waiting.get(1).context("the second call is a deployment")
}

fn call(site: &Site, token: &'static str, tool: &str, arguments: Value) -> Result<TaskId> {
    let caller = Caller::with_tasks(site.address(0)?, Some(token));
    let reply = caller.call(tool, arguments)?;
    let task = reply["result"]["taskId"].as_str();
    Ok(TaskId::new(task.with_context(|| format!("`{tool}` is not a task: {reply}"))?))
}

/// Votes for a call, which needs another vote.
fn approve(site: &Site, task: &TaskId) -> Result<()> {
    let cid = site.visitor(0, CID.deciding)?;
    let path = format!("inputs/{task}/{APPROVAL}");
    let digest = cid.read(&path)?["digest"].clone();
    let answer = json!({"action": "accept", "digest": digest, "reason": "release notes checked"});
    let reply = cid.post(&format!("{path}/answer"), &answer)?;
    ensure!(reply.status == 200, "a vote was rejected with {}: {}", reply.status, reply.body);
    Ok(())
}
