//! External events: another system delivers a value with a completion token.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::{
    server::{
        Durable, Result, Server, State, Tool,
        http::HttpConfig,
        tasks::{CompletionOutcome, TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};
use serde_json::{Value, json};

use super::world::{get, modern, start, until};
use crate::support::{
    http::{Connection, Request},
    pipe::{Pipe, error, result, text},
};

/// Completion tokens, as a job system would store them.
#[derive(Clone, Default)]
struct Jobs(Arc<Mutex<Vec<String>>>);

impl Jobs {
    async fn next(&self) -> String {
        loop {
            if let Some(token) = self.0.lock().unwrap().last().cloned() {
                return token;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn render(cx: Durable, jobs: State<Jobs>) -> Result<String> {
    cx.set_status_message("waiting for the farm");
    let job = cx.external_event::<Value>("film").await?;
    cx.step("submit", async || {
        jobs.0.lock().unwrap().push(job.token().to_owned());
        Ok(())
    })
    .await?;
    Ok(format!("{} in {}", job.await?, cx.task_id().is_some()))
}

fn server(store: &Arc<MemoryStore>, jobs: &Jobs) -> Server {
    let config = TaskConfig::new(Arc::clone(store) as _)
        .engine(|engine| engine.park_after = Duration::from_millis(50));
    let auto = TaskPolicy::Auto { after: Duration::from_secs(3600) };
    Server::builder("films", "1")
        .tasks(config)
        .state(jobs.clone())
        .seal_keys(outlive::server::SealKeys::new([7; 32]))
        .tool(Tool::new("render", render).task(auto))
        .tool(Tool::new("inline", render))
        .build()
        .unwrap()
}

// T2-83
#[tokio::test]
async fn external_event_value_reaches_handler() {
    let (store, jobs) = (Arc::new(MemoryStore::new()), Jobs::default());
    let first = server(&store, &jobs);
    let mut pipe = Pipe::open(&first);
    let id = start(&mut pipe, "render", json!({})).await;
    let token = jobs.next().await;
    let waiting = get(&mut pipe, &id).await;
    assert_eq!(waiting["status"], "working", "the client gets no input request: {waiting}");
    assert_eq!(waiting["statusMessage"], "waiting for the farm");
    let forged = json!({"taskId": id, "inputResponses": {"film": {"action": "accept"}}});
    result(&modern(&mut pipe, "tasks/update", forged).await);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        get(&mut pipe, &id).await["status"],
        "working",
        "a client cannot complete the event"
    );
    // The task is parked, and another replica accepts the value.
    let second = server(&store, &jobs);
    let other = Pipe::open(&second);
    let say = async |token: &str, value: Value| {
        second.complete_external_event(token, value).await.unwrap()
    };
    assert_eq!(say(&format!("{token}x"), json!(1)).await, CompletionOutcome::Unknown);
    assert_eq!(say(&token, json!({"frames": 24})).await, CompletionOutcome::Taken);
    assert_eq!(say(&token, json!("again")).await, CompletionOutcome::TooLate);
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), r#"{"frames":24} in true"#);
    drop(other);
}

#[tokio::test]
async fn external_event_without_task_fails_with_remedy() {
    let (store, jobs) = (Arc::new(MemoryStore::new()), Jobs::default());
    let mut pipe = Pipe::open(&server(&store, &jobs));
    for (tool, capabilities) in [("inline", super::world::holds()), ("render", json!({}))] {
        let answer = pipe.modern_with(capabilities, "tools/call", json!({"name": tool})).await;
        let said = text(&result(&answer)).to_owned();
        assert!(said.contains("set a task policy on the tool"), "{said}");
    }
    assert!(error(&modern(&mut pipe, "tools/call", json!({"name": "none"})).await).is_object());
}

#[tokio::test]
async fn external_event_is_completed_over_http() {
    let (store, jobs) = (Arc::new(MemoryStore::new()), Jobs::default());
    let server = server(&store, &jobs);
    let config = HttpConfig::new().external_event_path("/jobs");
    let serving = server.serve_http("127.0.0.1:0", config).await.unwrap();
    let mut pipe = Pipe::open(&server);
    let id = start(&mut pipe, "render", json!({})).await;
    let path = format!("/jobs/{}", jobs.next().await);
    let mut client = Connection::open(serving.address()).await;
    for (method, path, body, status) in [
        ("GET", path.as_str(), "", 405),
        ("POST", "/jobs/none", "1", 404),
        ("POST", &path, "{", 400),
        ("POST", &path, r#""ready""#, 204),
        ("POST", &path, r#""late""#, 409),
    ] {
        let request = Request::new(method, "2026-07-28").target(path).raw(body);
        assert_eq!(client.send(&request).await.status(), status, "{method} {path} {body}");
    }
    let done = until(&mut pipe, &id, "completed").await;
    assert_eq!(text(&done["result"]), r#""ready" in true"#);
}
