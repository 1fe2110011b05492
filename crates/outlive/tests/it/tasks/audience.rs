//! The audience of input requests, from the handler to the store.

use std::sync::Arc;

use outlive::{
    Form,
    server::{
        Durable, Principal, Result, Tool,
        durable::{Audience, ElicitOutcome, InputRequestSet, Round, RoundOutcome},
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{InputSource, MemoryStore, TaskId, TaskStore},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};

use super::world::{Counts, builder, modern, start, until};
use crate::support::pipe::{Pipe, result, text};

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    yes: bool,
}

async fn refund(cx: Durable) -> Result<String> {
    let asked = cx.elicit::<Approval>("approve", "Refund?").audience(Audience::Caller);
    Ok(format!("refund: {}", asked.await?.yes))
}

async fn visit(cx: Durable) -> Result<String> {
    let asked = cx.elicit_url("approve", "Pay", "https://pay.example/1");
    asked.audience(Audience::Caller).await?;
    Ok("paid".to_owned())
}

async fn rounds(round: Round) -> Result<RoundOutcome<String>> {
    Ok(match round.form::<Approval>("approve")? {
        Some(ElicitOutcome::Accepted(approval)) => {
            RoundOutcome::Done(format!("round: {}", approval.yes))
        }
        _ => {
            let asked = InputRequestSet::new().form::<Approval>("approve", "Sure?")?;
            RoundOutcome::Ask(asked.audience(Audience::Caller))
        }
    })
}

/// Starts a tool whose input request is for the caller. Returns its store, its client and its task.
async fn asked(tool: &str) -> (Arc<MemoryStore>, Pipe, TaskId) {
    let store = Arc::new(MemoryStore::new());
    let server = builder(TaskConfig::new(Arc::clone(&store) as _), &Counts::default())
        .tool(Tool::new("refund", refund).task(TaskPolicy::Always))
        .tool(Tool::new("visit", visit).task(TaskPolicy::Always))
        .tool(Tool::new("rounds", rounds).task(TaskPolicy::Always))
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    let capabilities = json!({
        "elicitation": {"form": {}, "url": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    });
    let created = pipe.modern_with(capabilities, "tools/call", json!({"name": tool})).await;
    let id = result(&created)["taskId"].as_str().unwrap().to_owned();
    until(&mut pipe, &id, "input_required").await;
    (store, pipe, TaskId::new(id))
}

/// Responds as a tool or an answer link would, and returns the number of accepted responses.
async fn respond(store: &MemoryStore, id: &TaskId, name: &str, from: InputSource) -> Option<usize> {
    let response = json!({"action": "accept", "content": {"yes": true}});
    let responses = vec![(name.to_owned(), to_raw_value(&response).unwrap())];
    store.respond(Principal::LOCAL.key(), id, from, responses, u64::MAX).await.unwrap()
}

async fn update(pipe: &mut Pipe, id: &TaskId, name: &str, content: Value) {
    let params = json!({"taskId": id.as_str(),
        "inputResponses": {name: {"action": "accept", "content": content}}});
    modern(pipe, "tasks/update", params).await;
}

#[tokio::test(start_paused = true)]
async fn input_request_for_the_caller_accepts_only_the_client() {
    for (tool, expected) in
        [("refund", "refund: true"), ("visit", "paid"), ("rounds", "round: true")]
    {
        let (store, mut pipe, id) = asked(tool).await;
        let record = store.get(Principal::LOCAL.key(), &id).await.unwrap().unwrap();
        assert_eq!(record.input_requests[0].audience, Audience::Caller, "{tool}");
        for from in [InputSource::Tool, InputSource::Link, InputSource::External] {
            assert_eq!(respond(&store, &id, "approve", from).await, Some(0), "{tool} {from:?}");
        }
        update(&mut pipe, &id, "approve", json!({"yes": true})).await;
        let done = until(&mut pipe, id.as_str(), "completed").await;
        assert_eq!(text(&done["result"]), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn reissued_input_request_keeps_its_audience() {
    let (store, mut pipe, id) = asked("refund").await;
    update(&mut pipe, &id, "approve", json!({"yes": "perhaps"})).await;
    let name = loop {
        let record = store.get(Principal::LOCAL.key(), &id).await.unwrap().unwrap();
        match record.input_requests.first() {
            Some(input) if input.name != "approve" => {
                assert_eq!(input.audience, Audience::Caller);
                break input.name.clone();
            }
            _ => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    };
    assert_eq!(respond(&store, &id, &name, InputSource::Tool).await, Some(0));
    update(&mut pipe, &id, &name, json!({"yes": false})).await;
    let done = until(&mut pipe, id.as_str(), "completed").await;
    assert_eq!(text(&done["result"]), "refund: false");
}

#[tokio::test(start_paused = true)]
async fn input_request_for_the_client_accepts_a_tool() {
    let (store, mut pipe, _) = asked("refund").await;
    let id = TaskId::new(start(&mut pipe, "deploy", json!({})).await);
    until(&mut pipe, id.as_str(), "input_required").await;
    assert_eq!(respond(&store, &id, "approve", InputSource::Tool).await, Some(1));
    let done = until(&mut pipe, id.as_str(), "completed").await;
    assert_eq!(text(&done["result"]), "shop:1: true");
}
