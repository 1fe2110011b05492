//! Cancellation: what it stops, what it silences, and what it spares.

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
async fn a_cancelled_call_is_dropped_and_never_answered() {
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
async fn a_cancellation_that_fits_nothing_is_ignored() {
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe = Pipe::speaking(&server(&gate), version).await;
        let id = pipe.send("tools/call", json!({"name": "wait"})).await;
        gate.arrived().await;
        // Unknown, of the other type, malformed.
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
        // Too late: it has been answered.
        pipe.cancel(id).await;
        pipe.cancel(id).await;
        pipe.quiet().await;
    }
}

// The reason is optional, and is for people.
#[tokio::test(start_paused = true)]
async fn a_reason_may_be_given() {
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
async fn the_id_of_a_cancelled_call_can_be_used_again_at_once() {
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
        // In one piece: the second call begins before the first has been dropped.
        pipe.send_raw(format!("{message}\n{cancel}\n{message}\n").as_bytes()).await;
        gate.arrived().await;
        gate.arrived().await;
        gate.abandoned().await;
        gate.open(1);
        assert_eq!(text(&pipe.answer("same").await["result"]), "done", "{version}");
        pipe.quiet().await;
    }
}

/// What a test and the tasks that a handler left behind tell each other.
#[derive(Clone, Default)]
struct Task {
    running: Arc<Notify>,
    cancelled: Arc<Notify>,
}

async fn heard(notify: &Notify) {
    timeout(Duration::from_secs(10), notify.notified()).await.expect("the task is heard of");
}

/// Starts a task that outlives the handler, and waits for ever.
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
async fn tasks_that_a_handler_started_learn_of_it_and_cannot_speak_any_more() {
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
async fn a_call_that_ends_by_itself_was_not_cancelled() {
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
    assert!(told.is_err(), "nobody cancelled it");
}

// STDIO-12
#[tokio::test(start_paused = true)]
async fn a_client_that_says_no_more_still_gets_its_answers() {
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
async fn the_calls_of_a_client_that_vanished_are_cancelled() {
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe = Pipe::speaking(&server(&gate), version).await;
        for _ in 0..3 {
            pipe.send("tools/call", json!({"name": "wait"})).await;
            gate.arrived().await;
        }
        drop(pipe);
        // The first answer finds nobody; then the others are not wanted either.
        gate.open(1);
        gate.abandoned().await;
        gate.abandoned().await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_said_before_is_not_taken_back() {
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
