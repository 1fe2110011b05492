//! Cancellation of calls: by notification and by disconnect.

use std::{sync::Arc, time::Duration};

use outlive::server::{Args, Cx, Json, LoggingLevel, Prompt, Resource, Server, State, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::Notify, time::timeout};

use crate::support::{
    gate::Gate,
    pipe::{MODERN, Pipe, REVISIONS, text},
};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

async fn wait(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    "done"
}

fn server(gate: &Gate) -> Server {
    Server::builder("test", "1")
        .logging(true)
        .tool(Tool::new("wait", wait))
        .tool(Tool::new("quick", async || "quick"))
        .resource(Resource::new("mem://wait", "wait", wait))
        .prompt(Prompt::new("wait", wait))
        .custom_method("own/wait", async |gate: State<Gate>| {
            gate.pass().await;
            Json(json!({}))
        })
        .state(gate.clone())
        .build()
        .unwrap()
}

fn slow() -> [(&'static str, Value); 4] {
    [
        ("tools/call", json!({"name": "wait"})),
        ("resources/read", json!({"uri": "mem://wait"})),
        ("prompts/get", json!({"name": "wait"})),
        ("own/wait", json!({})),
    ]
}

// CANC-03, STDIO-10
#[tokio::test(start_paused = true)]
async fn cancelled_call_is_dropped_without_response() {
    for version in REVISIONS {
        for (method, params) in slow() {
            let gate = Gate::default();
            let mut pipe = Pipe::speaking(&server(&gate), version).await;
            let id = pipe.send(method, params).await;
            gate.arrived().await;
            pipe.cancel(id).await;
            gate.abandoned().await;
            gate.open(1);
            assert_eq!(text(&pipe.call("quick", json!({})).await), "quick", "{version}: {method}");
            pipe.quiet().await;
        }
    }
}

// CANC-05
#[tokio::test(start_paused = true)]
async fn cancellation_of_unknown_request_is_ignored() {
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe = Pipe::speaking(&server(&gate), version).await;
        let id = pipe.send("tools/call", json!({"name": "wait"})).await;
        gate.arrived().await;
        // Unknown IDs, IDs of another type, and malformed parameters.
        for other in
            [json!(999), json!(id.to_string()), json!(null), json!([id]), json!({"id": id})]
        {
            pipe.cancel(other).await;
        }
        pipe.notify("notifications/cancelled", json!({})).await;
        pipe.notify("notifications/cancelled", json!({"requestId": "x", "reason": {"deep": true}}))
            .await;
        pipe.send_raw(
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":[{id}]}}\n"
            )
            .as_bytes(),
        )
        .await;
        assert_eq!(text(&pipe.call("quick", json!({})).await), "quick", "{version}");
        assert_eq!(gate.count_abandoned(), 0, "{version}");
        gate.open(1);
        assert_eq!(text(&pipe.answer(id).await["result"]), "done", "{version}");
        // These cancellations come after the response.
        pipe.cancel(id).await;
        pipe.cancel(id).await;
        pipe.quiet().await;
    }
}

// The reason is optional and informational.
#[tokio::test(start_paused = true)]
async fn cancellation_with_reason_cancels_call() {
    let gate = Gate::default();
    let mut pipe = Pipe::speaking(&server(&gate), MODERN).await;
    let id = pipe.send("tools/call", json!({"name": "wait"})).await;
    gate.arrived().await;
    pipe.notify(
        "notifications/cancelled",
        json!({"reason": "bored", "requestId": id, "_meta": {}}),
    )
    .await;
    gate.abandoned().await;
    pipe.quiet().await;
}

// RPC-03
#[tokio::test(start_paused = true)]
async fn request_id_of_cancelled_call_is_reusable_immediately() {
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe = Pipe::speaking(&server(&gate), version).await;
        let params = match version {
            MODERN => crate::support::pipe::with_meta(json!({"name": "wait"})),
            _ => json!({"name": "wait"}),
        };
        let message =
            json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": params});
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "same"}});
        // One write: the second call starts before the server has dropped the first.
        pipe.send_raw(format!("{message}\n{cancel}\n{message}\n").as_bytes()).await;
        gate.arrived().await;
        gate.arrived().await;
        gate.abandoned().await;
        gate.open(1);
        assert_eq!(text(&pipe.answer("same").await["result"]), "done", "{version}");
        pipe.quiet().await;
    }
}

/// Signals between a test and the tokio tasks that a handler spawned.
#[derive(Clone, Default)]
struct Task {
    running: Arc<Notify>,
    cancelled: Arc<Notify>,
}

async fn heard(notify: &Notify) {
    timeout(Duration::from_secs(10), notify.notified()).await.expect("the task sends its signal");
}

/// Spawns a tokio task that outlives the handler, and never returns.
async fn delegate(cx: Cx, task: State<Task>) -> &'static str {
    let task = Task::clone(&task);
    tokio::spawn(async move {
        assert!(!cx.is_cancelled());
        task.running.notify_one();
        cx.cancelled().await;
        assert!(cx.is_cancelled());
        cx.progress(1.0, None, "still here");
        cx.log(LoggingLevel::Error, "still here");
        assert!(cx.notify("own/notice", json!({})).is_ok());
        task.cancelled.notify_one();
    });
    std::future::pending().await
}

// CANC-03, STDIO-10
#[tokio::test(start_paused = true)]
async fn spawned_tasks_of_cancelled_call_see_cancellation_and_send_nothing() {
    for version in REVISIONS {
        let task = Task::default();
        let builder =
            Server::builder("test", "1").logging(true).tool(Tool::new("delegate", delegate));
        let mut pipe = Pipe::speaking(&builder.state(task.clone()).build().unwrap(), version).await;
        let meta = json!({"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"});
        let meta = if version == MODERN { meta } else { json!({"progressToken": "t"}) };
        let id = pipe.send("tools/call", json!({"name": "delegate", "_meta": meta})).await;
        heard(&task.running).await;
        pipe.cancel(id).await;
        heard(&task.cancelled).await;
        pipe.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn completed_call_does_not_signal_cancellation() {
    let task = Task::default();
    let answer = async |cx: Cx, task: State<Task>| {
        let task = Task::clone(&task);
        tokio::spawn(async move {
            cx.cancelled().await;
            task.cancelled.notify_one();
        });
        tokio::task::yield_now().await;
        "done"
    };
    let server = Server::builder("test", "1")
        .tool(Tool::new("answer", answer))
        .state(task.clone())
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    assert_eq!(text(&pipe.call("answer", json!({})).await), "done");
    pipe.quiet().await;
    let told = timeout(Duration::from_secs(1), task.cancelled.notified()).await;
    assert!(told.is_err(), "the call was not cancelled");
}

// STDIO-12
#[tokio::test(start_paused = true)]
async fn client_closing_its_output_still_gets_responses() {
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe = Pipe::speaking(&server(&gate), version).await;
        let first = pipe.send("tools/call", json!({"name": "wait"})).await;
        let second = pipe.send("tools/call", json!({"name": "wait"})).await;
        gate.arrived().await;
        gate.arrived().await;
        pipe.finish().await;
        gate.open(2);
        let mut ids: Vec<_> =
            pipe.read_to_end().await.iter().map(|answer| answer["id"].as_u64()).collect();
        ids.sort_unstable();
        assert_eq!(ids, [Some(first), Some(second)], "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_disconnected_client_are_cancelled() {
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe = Pipe::speaking(&server(&gate), version).await;
        for _ in 0..3 {
            pipe.send("tools/call", json!({"name": "wait"})).await;
            gate.arrived().await;
        }
        drop(pipe);
        // Writing the first response fails, so the server cancels the other calls.
        gate.open(1);
        gate.abandoned().await;
        gate.abandoned().await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_sent_before_cancellation_is_delivered() {
    let talk = async |_: Args<Nothing>, cx: Cx, gate: State<Gate>| {
        cx.progress(1.0, None, "");
        gate.pass().await;
        cx.progress(2.0, None, "");
        "done"
    };
    for version in REVISIONS {
        let gate = Gate::default();
        let server = Server::builder("test", "1")
            .tool(Tool::new("talk", talk))
            .state(gate.clone())
            .build()
            .unwrap();
        let mut pipe = Pipe::speaking(&server, version).await;
        let params = json!({"name": "talk", "arguments": {}, "_meta": {"progressToken": 1}});
        let id = pipe.send("tools/call", params).await;
        assert_eq!(pipe.read().await["params"]["progress"], 1, "{version}");
        pipe.cancel(id).await;
        gate.abandoned().await;
        pipe.quiet().await;
    }
}
