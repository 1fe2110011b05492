//! Limits: places of calls, processes, and runs that wait for input. Waiting occupies no worker.

use std::sync::Arc;

use outlive::{
    client::{
        Client, Version,
        input::{InputCallbacks, InputResponse},
    },
    server::{Server, tasks::TaskPolicy},
    store::{MemoryStore, StoreMonitor as _},
};
use outlive_gateway::{Policy, Upstream};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::{
    Counter, HttpUpstream, Served, Turnstile, eventually, named_server, process, text,
};

fn always() -> Policy {
    Policy::new().task(TaskPolicy::Always)
}

/// Serves a tool that waits at a gate.
async fn gated(gate: &Turnstile) -> HttpUpstream {
    let server = Server::builder("up", "1").tool(gate.tool("wait")).build().unwrap();
    HttpUpstream::serve(server).await
}

/// Checks that a task of another upstream runs to its end.
async fn assert_other_task_runs(client: &Client) {
    let mut other = client.start_tool("other__one", json!({})).await.unwrap();
    let wait = tokio::time::timeout(std::time::Duration::from_secs(10), other.wait());
    assert_eq!(text(&wait.await.expect("a worker is free").unwrap()), "result of one");
}

#[tokio::test(flavor = "multi_thread")]
async fn task_that_waits_for_a_place_of_its_upstream_frees_its_worker() {
    let (gate, counter) = (Turnstile::default(), Counter::default());
    let up = gated(&gate).await;
    let other = HttpUpstream::serve(named_server(&["one"], &counter)).await;
    let store = Arc::new(MemoryStore::new());
    let served = Served::with_engine(
        Arc::clone(&store),
        |engine| {
            engine.max_running = 2;
            engine.max_running_per_caller = Some(2);
        },
        [
            up.settings("up").max_concurrent(1).policy(always()),
            other.settings("other").policy(always()),
        ],
    );
    let client = served.client(Version::V2025_11_25).await;
    let mut first = client.start_tool("up__wait", json!({})).await.unwrap();
    eventually("the first execution", async || gate.1.get() == 1).await;
    let mut second = client.start_tool("up__wait", json!({})).await.unwrap();
    eventually("the second task in the store", async || store.stats().await.unwrap().parked == 1)
        .await;
    assert_other_task_runs(&client).await;
    assert_eq!(gate.1.get(), 1, "the second call waits for its place");
    gate.open();
    assert_eq!(text(&first.wait().await.unwrap()), "opened");
    gate.open();
    assert_eq!(text(&second.wait().await.unwrap()), "opened");
    served.gateway.shutdown().await;
}

/// Returns an upstream with one process, which a form keeps busy.
fn held_upstream() -> Upstream {
    process("held", "serves", None).protocol_version(Version::V2025_06_18).max_processes(1)
}

#[tokio::test(flavor = "multi_thread")]
async fn inline_call_beyond_the_processes_gets_the_name_of_the_limit() {
    let never = Policy::new().task(TaskPolicy::Never);
    let served = Served::new([held_upstream().policy(never)]);
    // Two classes of clients need two processes, and a form keeps the first one busy.
    let open = Arc::new(Notify::new());
    let user = answering_after(&served, &open).await;
    let form = tokio::spawn(async move { user.call_tool("held__form", json!({})).await });
    form_is_open(&served).await;
    let client = served.client(Version::V2025_06_18).await;
    let error = client.call_tool("held__echo", json!({})).await.unwrap_err().to_string();
    assert!(error.contains("max_processes of upstream `held`"), "{error}");
    open.notify_one();
    assert_eq!(text(&form.await.unwrap().unwrap()), r#"painted "red""#);
    let result = client.call_tool("held__echo", json!({})).await.unwrap();
    assert_eq!(text(&result), "{}");
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn task_beyond_the_processes_waits_until_one_is_idle() {
    let served = Served::new([held_upstream().policy(always())]);
    let open = Arc::new(Notify::new());
    let user = answering_after(&served, &open).await;
    let form = tokio::spawn(async move { user.call_tool("held__form", json!({})).await });
    form_is_open(&served).await;
    let client = served.client(Version::V2025_11_25).await;
    let mut waiting = client.start_tool("held__echo", json!({})).await.unwrap();
    open.notify_one();
    assert_eq!(text(&waiting.wait().await.unwrap()), "{}");
    assert_eq!(text(&form.await.unwrap().unwrap()), r#"painted "red""#);
    served.gateway.shutdown().await;
}

/// Returns a client whose user responds to forms when notified.
async fn answering_after(served: &Served, open: &Arc<Notify>) -> Client {
    let open = Arc::clone(open);
    let user = InputCallbacks::new().form(move |_| {
        let open = Arc::clone(&open);
        async move {
            open.notified().await;
            InputResponse::accept(json!({"color": "red"}))
        }
    });
    let builder = Client::builder("test", "1").protocol_version(Version::V2025_11_25);
    builder.input_handler(user).connect(&served.server).await.unwrap()
}

/// Waits for a form, which keeps its process busy. Reading lists does too, but not for long.
async fn form_is_open(served: &Served) {
    eventually("the form", async || {
        served.gateway.metrics().to_string().contains(r#"kind="form",path="connection"} 1"#)
    })
    .await;
}

fn form_upstream() -> Upstream {
    process("child", "serves", None).protocol_version(Version::V2025_06_18).policy(always())
}

#[tokio::test(flavor = "multi_thread")]
async fn run_that_waits_for_input_lends_its_worker() {
    let other = HttpUpstream::serve(named_server(&["one"], &Counter::default())).await;
    let served = Served::with_engine(
        Arc::new(MemoryStore::new()),
        |engine| {
            engine.max_running = 1;
            engine.max_running_per_caller = Some(1);
        },
        [form_upstream(), other.settings("other").policy(always())],
    );
    let open = Arc::new(Notify::new());
    let user = answering_after(&served, &open).await;
    let mut form = user.start_tool("child__form", json!({})).await.unwrap();
    let waiting = tokio::spawn(async move { form.wait().await });
    form_is_open(&served).await;
    assert_other_task_runs(&user).await;
    open.notify_one();
    assert_eq!(text(&waiting.await.unwrap().unwrap()), r#"painted "red""#);
    served.gateway.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_request_beyond_the_idle_runs_of_a_caller_is_refused_with_the_limit() {
    let served = Served::with_engine(
        Arc::new(MemoryStore::new()),
        |engine| engine.max_idle_runs_per_caller = 1,
        [form_upstream()],
    );
    let open = Arc::new(Notify::new());
    let user = answering_after(&served, &open).await;
    let mut first = user.start_tool("child__form", json!({})).await.unwrap();
    let waiting = tokio::spawn(async move { first.wait().await });
    form_is_open(&served).await;
    let mut second = user.start_tool("child__form", json!({})).await.unwrap();
    let shown = match second.wait().await {
        Ok(result) => text(&result),
        Err(error) => error.to_string(),
    };
    assert!(shown.contains("max_idle_runs_per_caller"), "{shown}");
    open.notify_one();
    assert_eq!(text(&waiting.await.unwrap().unwrap()), r#"painted "red""#);
    served.gateway.shutdown().await;
}
