//! Tools with which third-party clients test features that the suite does not cover: cancellation,
//! URLs, input requests in tasks, changed resources and partial results.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use outlive::server::{
    BuildError, CallToolResult, Cx, Durable, Result, Server, ServerBuilder, Tool,
    durable::ElicitOutcome, tasks::TaskPolicy,
};

use crate::questions::sampling;

/// Number of waiting calls, and of cancelled ones.
#[derive(Debug, Default)]
struct Held {
    running: AtomicUsize,
    cancelled: AtomicUsize,
}

pub(crate) fn add(builder: ServerBuilder) -> ServerBuilder {
    let held = Arc::new(Held::default());
    let holding = Arc::clone(&held);
    builder
        .tool(
            Tool::new("hold", move |cx: Cx| hold(cx, Arc::clone(&holding)))
                .description("Waits until it is cancelled"),
        )
        .tool(
            Tool::new("held", move || says(Arc::clone(&held)))
                .description("Returns the number of waiting and of cancelled calls"),
        )
        .tool(Tool::new("test_url_elicitation", url).description("Elicits consent at a URL"))
        .tool(Tool::new("sample_in_task", sampling).description("Samples the client's model"))
        .tool(
            Tool::new("test_partial_results", partials)
                .description("Emits three lines")
                .task(TaskPolicy::Auto { after: Duration::ZERO })
                .streams_content(),
        )
}

/// Adds the tool that changes a resource of the server.
pub(crate) fn own(server: &Server) -> Result<(), BuildError> {
    let own = server.clone();
    server.add_tool(
        Tool::new("test_touch_resource", move || touch(own.clone()))
            .description("Changes the watched resource"),
    )
}

async fn touch(server: Server) -> &'static str {
    server.resource_updated("test://watched-resource");
    "touched"
}

async fn url(cx: Durable) -> Result<String> {
    let elicit = cx.elicit_url("consent", "Please agree", "https://example.com/consent");
    let action = match elicit.outcome().await? {
        ElicitOutcome::Accepted(()) => "accept",
        ElicitOutcome::Declined => "decline",
        ElicitOutcome::Cancelled => "cancel",
    };
    Ok(format!("url: {action}"))
}

async fn partials(cx: Durable) -> Result<CallToolResult> {
    for line in ["one", "two", "three"] {
        cx.emit(line).await?;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(CallToolResult::text("that is all"))
}

/// Updates the counters when the call ends, also when it is dropped.
struct Waiting(Arc<Held>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
        self.0.cancelled.fetch_add(1, Relaxed);
    }
}

async fn hold(cx: Cx, held: Arc<Held>) -> &'static str {
    held.running.fetch_add(1, Relaxed);
    let _waiting = Waiting(held);
    cx.cancelled().await;
    "held"
}

async fn says(held: Arc<Held>) -> String {
    let (running, cancelled) = (held.running.load(Relaxed), held.cancelled.load(Relaxed));
    format!("running: {running}, cancelled: {cancelled}")
}
