//! One handler with an input request in every version that has elicitation.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use outlive::{
    server::{Durable, Result, Server, State, Tool},
    wire::{BooleanSchema, RequestedSchema},
};
use serde::Deserialize;
use serde_json::json;

use crate::support::pipe::{Pipe, text};

#[derive(Deserialize)]
struct Approval {
    yes: bool,
}

#[derive(Default, Clone)]
struct Counter(Arc<AtomicUsize>);

async fn deploy(cx: Durable, built: State<Counter>) -> Result<String> {
    let image: String = cx
        .step("build", async || {
            built.0.fetch_add(1, Ordering::Relaxed);
            Ok("image:1".to_owned())
        })
        .await?;
    let schema = RequestedSchema::default().with_required("yes", BooleanSchema::default());
    let approval: Approval = cx.elicit_with("approve", "Deploy?", schema).await?;
    Ok(format!("{image} {}", approval.yes))
}

fn server(counter: &Counter) -> Server {
    Server::builder("asks", "1")
        .state(counter.clone())
        .tool(Tool::new("deploy", deploy))
        .build()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn legacy_call_sends_input_request_and_waits() {
    for version in ["2025-06-18", "2025-11-25"] {
        let counter = Counter::default();
        let mut pipe = Pipe::open(&server(&counter));
        pipe.legacy_with(version, json!({"elicitation": {}})).await;
        let id = pipe.send("tools/call", json!({"name": "deploy"})).await;
        let asked = pipe.read().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert_eq!(asked["params"]["message"], "Deploy?");
        pipe.reply(&asked, json!({"action": "accept", "content": {"yes": true}})).await;
        let answer = pipe.answer(id).await;
        assert_eq!(text(&answer["result"]), "image:1 true", "{answer}");
        assert_eq!(counter.0.load(Ordering::Relaxed), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn modern_call_with_input_request_ends_and_resumes_with_next_round() {
    let counter = Counter::default();
    let mut pipe = Pipe::open(&server(&counter));
    let can = json!({"elicitation": {}});
    let asked = pipe.modern_with(can.clone(), "tools/call", json!({"name": "deploy"})).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    assert_eq!(result["inputRequests"]["approve"]["method"], "elicitation/create");
    let retry = json!({
        "name": "deploy",
        "requestState": result["requestState"],
        "inputResponses": {"approve": {"action": "accept", "content": {"yes": false}}}
    });
    let answer = pipe.modern_with(can, "tools/call", retry).await;
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(text(&answer["result"]), "image:1 false");
    assert_eq!(counter.0.load(Ordering::Relaxed), 1);
}
