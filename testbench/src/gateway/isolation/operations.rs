//! The operations of a principal. Each returns the messages that the principal received, or an error.

use std::sync::{Mutex, PoisonError};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::conversation::{Conversation, accept, call};
use super::principal::Principal;
use crate::crash::random::Random;
use crate::hosts::caller::Caller;

/// Polls of a task.
const POLLS: usize = 500;

/// States, tasks and sessions that the principals show to each other. All are those of the first
/// client that left one.
#[derive(Debug, Default)]
pub(super) struct Loot {
    states: Mutex<Vec<(usize, Value)>>,
    tasks: Mutex<Vec<(usize, String)>>,
}

/// Items of each kind that are kept for others.
const KEPT: usize = 30;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Echo,
    Form,
    HttpForm,
    Rounds,
    Memory,
    Slow,
    Task,
    ForeignState,
    ForeignTask,
    ForeignSession,
}

pub(super) const KINDS: [Kind; 10] = [
    Kind::Echo,
    Kind::Form,
    Kind::HttpForm,
    Kind::Rounds,
    Kind::Memory,
    Kind::Slow,
    Kind::Task,
    Kind::ForeignState,
    Kind::ForeignTask,
    Kind::ForeignSession,
];

/// Runs an operation. Returns the messages that the principal received. `lane` is the number of the
/// thread among those of its principal.
pub(super) fn run(
    kind: Kind,
    principal: &Principal,
    others: &[Principal],
    loot: &Loot,
    lane: usize,
    random: &mut Random,
) -> Result<Vec<Value>> {
    let caller = if random.percent(50) { &principal.modern } else { &principal.legacy };
    match kind {
        Kind::Echo => {
            let tools = ["legacy__echo", "http__echo"];
            same(caller, principal, tools[random.below(tools.len())])
        }
        Kind::Form => confirmed(caller, principal, "legacy__form"),
        Kind::HttpForm => confirmed(caller, principal, "http__form"),
        Kind::Rounds => confirmed(caller, principal, "modern__rounds"),
        Kind::Memory => remembered(caller, principal),
        // Progress and log messages arrive on the stream of a legacy client.
        Kind::Slow => same(&principal.legacy, principal, "legacy__slow"),
        Kind::Task => task(principal, loot),
        Kind::ForeignState => foreign_state(principal, loot, lane, random),
        Kind::ForeignTask => foreign_task(principal, loot),
        Kind::ForeignSession => {
            let other = &others[random.below(others.len())];
            foreign_session(principal, other)
        }
    }
}

/// A call whose result is its mark.
fn same(caller: &Caller, principal: &Principal, tool: &str) -> Result<Vec<Value>> {
    let mark = principal.mark();
    let talk = call(caller, tool, &json!({"mark": mark}), &mark)?;
    ensure!(talk.text() == mark, "{tool} returned {}", talk.last());
    Ok(talk.messages)
}

/// A call with an input request, whose result is its mark and that of the input response.
fn confirmed(caller: &Caller, principal: &Principal, tool: &str) -> Result<Vec<Value>> {
    let (mark, response) = (principal.mark(), principal.mark());
    let talk = call(caller, tool, &json!({"mark": mark}), &response)?;
    ensure!(talk.inputs == 1, "{tool} had {} input requests", talk.inputs);
    let expected = format!("{mark} confirmed {response}");
    ensure!(talk.text() == expected, "{tool} returned {}", talk.last());
    Ok(talk.messages)
}

/// Values that the process of the principal remembers: its own, whichever thread wrote it last.
fn remembered(caller: &Caller, principal: &Principal) -> Result<Vec<Value>> {
    let mut messages = same(caller, principal, "legacy__remember")?;
    let recalled = call(caller, "legacy__recall", &json!({}), "")?;
    ensure!(
        recalled.text().starts_with(&principal.prefix()),
        "the process remembers {}",
        recalled.last()
    );
    let read = caller.request("resources/read", json!({"uri": "note://same"}))?;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_default();
    ensure!(text.starts_with(&principal.prefix()), "the resource is {read}");
    messages.extend(recalled.messages);
    messages.push(read);
    Ok(messages)
}

/// A task until its result. The principal shows its ID.
fn task(principal: &Principal, loot: &Loot) -> Result<Vec<Value>> {
    let mark = principal.mark();
    let caller = &principal.with_tasks;
    let created = caller.call("tasks__work", json!({"mark": mark}))?;
    let id = created["result"]["taskId"].as_str().unwrap_or_default().to_owned();
    ensure!(!id.is_empty(), "no task was created: {created}");
    keep(&loot.tasks, (principal.number, id.clone()));
    let mut messages = vec![created];
    for _ in 0..POLLS {
        let seen = caller.request("tasks/get", json!({"taskId": id}))?;
        let status = seen["result"]["status"].clone();
        messages.push(seen);
        if status != "working" {
            let last = messages.last().map(Value::to_string).unwrap_or_default();
            ensure!(status == "completed" && last.contains(&mark), "the task ended: {last}");
            return Ok(messages);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    anyhow::bail!("the task did not end: {:?}", messages.last())
}

/// Uses the request state of another principal, or leaves one.
///
/// The arguments are those of other principals, so that the state alone belongs to the principal. They
/// differ between its own threads: the gateway joins equal calls of one principal. The call of the
/// owner continues afterwards.
fn foreign_state(
    principal: &Principal,
    loot: &Loot,
    lane: usize,
    random: &mut Random,
) -> Result<Vec<Value>> {
    let tools = ["legacy__form", "http__form", "modern__rounds"];
    let tool = tools[random.below(tools.len())];
    let shared = format!("shared {lane}");
    let params = json!({"name": tool, "arguments": {"mark": shared}});
    let (_, mut messages) = principal.modern.exchange("tools/call", params.clone())?;
    let round = messages.last().cloned().unwrap_or_default();
    ensure!(round["result"]["requestState"].is_string(), "{tool} has no round: {round}");
    let other = take(&loot.states, principal.number);
    keep(&loot.states, (principal.number, json!({"params": params, "round": round})));
    if let Some(stolen) = other {
        let next = next_round(&stolen["params"], &stolen["round"], &principal.mark());
        let (_, replies) = principal.modern.exchange("tools/call", next)?;
        let reply = replies.last().cloned().unwrap_or_default();
        ensure!(reply.get("error").is_some(), "a foreign request state was accepted: {reply}");
        messages.extend(replies);
    }
    let mark = principal.mark();
    let next = next_round(&params, &round, &mark);
    let (_, replies) = principal.modern.exchange("tools/call", next)?;
    messages.extend(replies);
    let talk = Conversation { messages, inputs: 1 };
    ensure!(talk.text() == format!("{shared} confirmed {mark}"), "{tool} returned {}", talk.last());
    Ok(talk.messages)
}

/// The parameters of the round after `round`.
fn next_round(params: &Value, round: &Value, mark: &str) -> Value {
    let mut next = params.clone();
    let requests = round["result"]["inputRequests"].as_object();
    let keys = requests.into_iter().flat_map(|requests| requests.keys());
    next["inputResponses"] = keys.map(|key| (key.clone(), accept(mark))).collect();
    next["requestState"] = round["result"]["requestState"].clone();
    next
}

/// Asks for the task of another principal in every way.
fn foreign_task(principal: &Principal, loot: &Loot) -> Result<Vec<Value>> {
    let Some(id) = take(&loot.tasks, principal.number) else { return Ok(Vec::new()) };
    let mut messages = Vec::new();
    for method in ["tasks/get", "tasks/cancel"] {
        let reply = principal.with_tasks.request(method, json!({"taskId": id}))?;
        ensure!(reply.get("error").is_some(), "{method} of a foreign task got {reply}");
        messages.push(reply);
    }
    let reply = principal.legacy.request("tasks/result", json!({"taskId": id}))?;
    ensure!(reply.get("error").is_some(), "the result of a foreign task is {reply}");
    messages.push(reply);
    Ok(messages)
}

/// Uses the session of another principal.
fn foreign_session(principal: &Principal, other: &Principal) -> Result<Vec<Value>> {
    let thief = other.legacy.with_token(principal.token());
    let (status, messages) =
        thief.exchange("resources/read", json!({"uri": "note://same"})).unwrap_or_default();
    let is_refused = messages.iter().all(|message| message.get("result").is_none());
    ensure!(is_refused, "a foreign session got {status}: {messages:?}");
    Ok(messages)
}

/// Keeps an item for other principals.
fn keep<T>(items: &Mutex<Vec<T>>, item: T) {
    let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
    if items.len() >= KEPT {
        items.remove(0);
    }
    items.push(item);
}

/// Takes an item of another principal.
fn take<T>(items: &Mutex<Vec<(usize, T)>>, number: usize) -> Option<T> {
    let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
    let at = items.iter().position(|(owner, _)| *owner != number)?;
    Some(items.remove(at).1)
}
