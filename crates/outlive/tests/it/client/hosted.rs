//! Input requests that the client answers with tasks (`tasks.requests` of a legacy client).

use std::sync::Arc;

use outlive::{
    client::input::{InputCallbacks, InputResponse},
    wire::Version,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    kit::builder,
    script::{ask, initialized, line, pipe},
};

// T1C-20, T1C-21, T1C-22, T1C-23
#[tokio::test]
async fn client_task_is_polled_awaited_and_not_cancellable_after_its_end() {
    let gate = Arc::new(Semaphore::new(0));
    let passed = Arc::clone(&gate);
    let answers = InputCallbacks::new().form(move |_| {
        let passed = Arc::clone(&passed);
        async move {
            let _ = passed.acquire().await;
            InputResponse::Decline
        }
    });
    let mut task = String::new();
    let mut call = Value::Null;
    let (target, seen) = pipe(move |message| {
        match (message["method"].as_str(), message["id"].as_str()) {
            (Some("initialize"), _) => vec![line(message, &initialized("2025-11-25"))],
            (Some("tools/call"), _) => {
                call = message.clone();
                let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "task": {"ttl": 5000}});
                vec![ask("q", "elicitation/create", form)]
            }
            (_, Some("q")) => {
                task = message["result"]["task"]["taskId"].as_str().unwrap().to_owned();
                vec![
                    ask("get", "tasks/get", json!({"taskId": task})),
                    ask("other", "tasks/get", json!({"taskId": "nobody's"})),
                    ask("result", "tasks/result", json!({"taskId": task})),
                ]
            }
            // The user decides after the server has polled.
            (_, Some("get")) => {
                gate.add_permits(1);
                Vec::new()
            }
            (_, Some("result")) => vec![ask("late", "tasks/cancel", json!({"taskId": task}))],
            (_, Some("late")) => vec![line(&call, &json!({"content": []}))],
            _ => Vec::new(),
        }
    });
    let client = builder()
        .input_handler(answers)
        .host_tasks(true)
        .protocol_version(Version::V2025_11_25)
        .connect(target)
        .await
        .unwrap();
    client.call_tool("t", json!({})).await.unwrap();
    let seen = seen.lock().unwrap();
    let sent = |id: &str| -> Value {
        seen.iter()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .find(|message| message["id"] == id && message.get("method").is_none())
            .unwrap()
    };
    let hosts =
        &serde_json::from_str::<Value>(&seen[0]).unwrap()["params"]["capabilities"]["tasks"];
    assert_eq!(
        *hosts,
        json!({"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}})
    );
    let made = &sent("q")["result"]["task"];
    assert_eq!((&made["status"], &made["ttl"]), (&json!("working"), &json!(5000)));
    assert_eq!(sent("get")["result"]["status"], "working");
    assert_eq!(sent("other")["error"]["code"], -32602);
    let result = &sent("result")["result"];
    assert_eq!(result["action"], "decline");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], made["taskId"]);
    assert_eq!(sent("late")["error"]["code"], -32602);
}
