//! Kills of the gateway during calls, by the kind of the upstream.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::site::{Site, home};
use super::upstream::Upstream;
use super::{python, task};
use crate::crash::random::Random;
use crate::gateway::serving::{ADA, Home, MARKED};
use crate::gateway::setting::Setting;
use crate::hosts::caller::{Caller, text};
use crate::row::Row;

/// Longest time from a kill to the next event of a call.
const MAX_SILENCE: Duration = Duration::from_secs(2);

/// Time in which processes without a gateway end.
const ORPHANED: Duration = Duration::from_secs(10);

/// Fate of the call of one kill.
#[derive(Debug)]
struct Killed {
    key: String,
    expected: String,
    /// Text of the result or error.
    outcome: String,
    /// Time from the kill to the next event.
    silence: Duration,
}

/// Executions by key, and the number of processes that are left.
#[derive(Debug)]
struct After {
    executions: HashMap<String, usize>,
    left: usize,
}

/// Kills in calls of a Python server on stdio.
pub(super) fn stdio(setting: &Setting) -> Result<Vec<Row>> {
    let count = setting.choose(50, 2);
    let home = home(setting, "stdio", &python_file(setting, "task_after = \"300ms\"")?)?;
    let (killed, after) = kills(setting, &home, "studio__render", count)?;
    Ok(vec![once("kill -9 in calls of a Python server on stdio", &killed, count, &after)])
}

/// Kills while an input request is open: in a task, and in a bridged call.
pub(super) fn input(setting: &Setting) -> Result<Vec<Row>> {
    let count = setting.choose(50, 2);
    let file = python_file(setting, "tools.confirm = { task = \"always\" }")?;
    let in_task = asking(setting, "input-in-task", &file, count, asked_in_task)?;
    let bridged = asking(setting, "input-bridged", &python_file(setting, "")?, count, bridged)?;
    let case = "kill -9 with an open input request";
    Ok(vec![
        once(&format!("{case}, in a task"), &in_task.0, count, &in_task.1),
        once(&format!("{case}, in a bridged call"), &bridged.0, count, &bridged.1),
    ])
}

/// Kills during a task of an upstream over HTTP.
pub(super) fn upstream_task(setting: &Setting) -> Result<Vec<Row>> {
    let count = setting.choose(50, 1);
    let mut rows = Vec::new();
    for version in ["2025-11-25", "2026-07-28"] {
        let upstream = Upstream::start(setting)?;
        let keys = format!("protocol_version = \"{version}\"\ntask_after = \"300ms\"");
        let home = home(setting, &format!("task-{version}"), &upstream.file(&keys))?;
        let (killed, mut after) = kills(setting, &home, "render__work", count)?;
        after.executions = upstream.executions()?;
        let case = format!("kill -9 during a task of an upstream of {version}");
        rows.push(once(&case, &killed, count, &after));
    }
    Ok(rows)
}

/// Kills during a call whose stream can be resumed.
pub(super) fn stream(setting: &Setting) -> Result<Vec<Row>> {
    let count = setting.choose(50, 1);
    let upstream = Upstream::start(setting)?;
    let keys = "protocol_version = \"2025-06-18\"\ntask_after = \"300ms\"";
    let home = home(setting, "stream", &upstream.file(keys))?;
    let (killed, mut after) = kills(setting, &home, "render__render", count)?;
    after.executions = upstream.executions()?;
    Ok(vec![once("kill -9 during a stream that can be resumed", &killed, count, &after)])
}

/// Kills during calls that nothing can find again.
pub(super) fn unknown(setting: &Setting) -> Result<Vec<Row>> {
    let count = setting.choose(50, 2);
    let upstream = Upstream::start(setting)?;
    let keys = "protocol_version = \"2026-07-28\"\ntask_after = \"300ms\"";
    let home = home(setting, "unknown", &upstream.file(keys))?;
    let (killed, After { left, .. }) = kills(setting, &home, "render__render", count)?;
    let executions = upstream.executions()?;
    let is_told = |killed: &&Killed| killed.outcome.contains("unknown whether");
    let told = killed.iter().filter(is_told).count();
    let times = |killed: &&Killed| executions.get(&killed.key).copied().unwrap_or(0);
    let twice = killed.iter().filter(|killed| times(killed) > 1).count();
    let mut figure = format!(
        "{count} kills: {told} reported as unknown, {twice} executed twice, {left} processes left"
    );
    if let Some(other) = killed.iter().find(|killed| !is_told(killed)) {
        figure.push_str(&format!("; first: {other:?}"));
    }
    let bar = format!("{count} reported, 0 executed twice, 0 left");
    let is_met = told == count && twice == 0 && left == 0;
    Ok(vec![Row::new("kill -9 during other calls over HTTP", figure, bar, is_met)])
}

/// The file of a gateway in front of the Python server.
fn python_file(setting: &Setting, keys: &str) -> Result<String> {
    let command = python::command(setting)?;
    Ok(format!(
        "[upstreams.studio]\ncommand = {command}\n{MARKED}\nprotocol_version = \"2025-06-18\"\n{keys}\n"
    ))
}

/// Kills the gateway once in each of some calls, which are tasks.
fn kills(setting: &Setting, home: &Home, tool: &str, count: usize) -> Result<(Vec<Killed>, After)> {
    let mut site = Site::start(home)?;
    let mut random = Random::new(setting.seed);
    let caller = Caller::with_tasks(site.gateway()?.address, Some(ADA));
    // Steps of 0.1 s. The kill is after 0.3 s, when the call is a task, and before its end.
    let (steps, last_kill) = setting.choose((20, 1_200), (10, 400));
    let mut killed = Vec::new();
    for number in 0..count {
        let key = format!("call-{number}");
        let arguments = json!({"key": key, "steps": steps});
        let id = task::create(&site.at(&caller)?, tool, arguments)?;
        thread::sleep(random.millis(0..last_kill));
        let before = task::get(&site.at(&caller)?, &id)?;
        let at = site.replace()?;
        let is_later = |state: &Value| state["statusMessage"] != before["statusMessage"];
        task::until(&site, &caller, &id, is_later)?;
        let silence = at.elapsed();
        let end = task::until(&site, &caller, &id, task::has_ended)?;
        let (expected, outcome) = (format!("rendered {key}"), task::outcome(&end));
        killed.push(Killed { key, expected, outcome, silence });
    }
    Ok((killed, finish(site, home)?))
}

/// Stops the gateway, and counts executions and remaining processes.
fn finish(site: Site<'_>, home: &Home) -> Result<After> {
    let executions = site.executions.count()?;
    site.stop()?;
    Ok(After { executions, left: home.wait_for_no_processes(ORPHANED)?.len() })
}

/// Kills the gateway once in each of some calls with an input request.
fn asking(
    setting: &Setting,
    name: &str,
    file: &str,
    count: usize,
    call: fn(&mut Site<'_>, &str) -> Result<(String, Duration)>,
) -> Result<(Vec<Killed>, After)> {
    let home = home(setting, name, file)?;
    let mut site = Site::start(&home)?;
    let mut killed = Vec::new();
    for number in 0..count {
        let key = format!("{name}-{number}");
        let (outcome, silence) = call(&mut site, &key)?;
        killed.push(Killed { expected: format!("{key} is yes"), key, outcome, silence });
    }
    let after = finish(site, &home)?;
    Ok((killed, after))
}

/// A call that is a task, whose input request is in the task. Returns its outcome, and the time from
/// the kill until the new gateway shows the input request.
fn asked_in_task(site: &mut Site<'_>, key: &str) -> Result<(String, Duration)> {
    let caller = Caller::with_tasks(site.gateway()?.address, Some(ADA));
    let id = task::create(&caller, "studio__confirm", json!({"key": key}))?;
    let is_open = |state: &Value| state["status"] == "input_required";
    task::until(site, &caller, &id, is_open)?;
    let at = site.replace()?;
    let state = task::until(site, &caller, &id, is_open)?;
    let silence = at.elapsed();
    task::respond(&site.at(&caller)?, &id, &state, "yes")?;
    let end = task::until(site, &caller, &id, task::has_ended)?;
    Ok((task::outcome(&end), silence))
}

/// A call whose input request ends a round. Returns its outcome, and the time from the kill until
/// the new gateway has responded to the next round.
fn bridged(site: &mut Site<'_>, key: &str) -> Result<(String, Duration)> {
    let caller = Caller::with_input(site.gateway()?.address, Some(ADA));
    let mut params = json!({"name": "studio__confirm", "arguments": {"key": key}});
    let round = caller.request("tools/call", params.clone())?;
    let requests = round["result"]["inputRequests"].as_object();
    ensure!(requests.is_some(), "the call has no round: {round}");
    let response = json!({"action": "accept", "content": {"word": "yes"}});
    let keys = requests.into_iter().flat_map(|requests| requests.keys());
    params["inputResponses"] = keys.map(|key| (key.clone(), response.clone())).collect();
    params["requestState"] = round["result"]["requestState"].clone();
    let at = site.replace()?;
    let reply = site.at(&caller)?.request("tools/call", params)?;
    let outcome = match text(&reply) {
        text if text.is_empty() => reply.to_string(),
        text => text,
    };
    Ok((outcome, at.elapsed()))
}

/// The row of calls that must have one result and one execution each.
fn once(case: &str, killed: &[Killed], count: usize, after: &After) -> Row {
    let After { executions, left } = after;
    let times = |killed: &Killed| executions.get(&killed.key).copied().unwrap_or(0);
    let results = killed.iter().filter(|killed| killed.outcome == killed.expected).count();
    let sum: usize = killed.iter().map(times).sum();
    let silence = killed.iter().map(|killed| killed.silence).max().unwrap_or_default();
    let mut figure = format!(
        "{} kills: {results} results, {sum} executions, next event after at most {} ms, {left} processes left",
        killed.len(),
        silence.as_millis()
    );
    let is_wrong = |killed: &&Killed| killed.outcome != killed.expected || times(killed) != 1;
    let wrong = killed.iter().find(is_wrong);
    if let Some(wrong) = wrong {
        figure.push_str(&format!("; first: {wrong:?}, {} executions", times(wrong)));
    }
    let bar = format!("{count} results, {count} executions, ≤ 2 s, 0 left");
    let is_met = killed.len() >= count && wrong.is_none() && silence <= MAX_SILENCE && *left == 0;
    Row::new(case, figure, bar, is_met)
}
