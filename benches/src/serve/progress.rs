//! Servers for a call with progress: ours, and a bare SSE server as the control.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use anyhow::Result;
use axum::{
    Json, Router,
    response::sse::{Event, Sse},
    routing::post,
    serve::ListenerExt,
};
use futures_core::Stream;
use outlive::server::{Args, Cx, Server, Tool};
use serde::{Deserialize, Serialize};

/// Our server. By default it sends at most one notification per 20 ms and drops the others; here it
/// sends every one, as peers do.
pub(super) async fn ours() -> Result<(u16, impl Sized)> {
    let server = Server::builder("bench", "1.0.0")
        .limits(|limits| limits.progress_interval = Duration::ZERO)
        .tool(Tool::new("count", count).description("Reports progress steps"))
        .build()?;
    let serving = server.serve_http("127.0.0.1:0", super::unlimited()).await?;
    Ok((serving.address().port(), serving))
}

#[derive(Debug, Deserialize, schemars::JsonSchema)]
struct Count {
    steps: u32,
}

async fn count(cx: Cx, Args(Count { steps }): Args<Count>) -> String {
    for step in 1..=steps {
        cx.progress(f64::from(step), f64::from(steps), "");
        // A notification that is not sent before the next one would be dropped.
        tokio::task::yield_now().await;
    }
    format!("counted to {steps}")
}

/// The control: axum's events, one after the other, without the protocol.
pub(super) async fn control() -> Result<(u16, impl Sized)> {
    let router = Router::new().route("/mcp", post(events));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((port, serving))
}

#[derive(Deserialize)]
struct Request {
    id: u64,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    arguments: Count,
}

async fn events(Json(request): Json<Request>) -> Sse<Events> {
    let steps = request.params.arguments.steps;
    Sse::new(Events { id: request.id, steps, step: 0 })
}

/// Events that are always ready: hyper may combine several into one write, as our server may.
struct Events {
    id: u64,
    steps: u32,
    step: u32,
}

#[derive(Serialize)]
struct Message<P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Progress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<P>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    progress_token: u32,
    progress: f64,
    total: f64,
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.step += 1;
        let (step, steps) = (self.step, self.steps);
        let message = match step.cmp(&(steps + 1)) {
            std::cmp::Ordering::Less => Message {
                jsonrpc: "2.0",
                id: None,
                method: Some("notifications/progress"),
                params: Some(Progress {
                    progress_token: 1,
                    progress: f64::from(step),
                    total: f64::from(steps),
                }),
                result: None,
            },
            std::cmp::Ordering::Equal => Message {
                jsonrpc: "2.0",
                id: Some(self.id),
                method: None,
                params: None,
                result: Some(super::control_http::modern_result(format!("counted to {steps}"))),
            },
            std::cmp::Ordering::Greater => return Poll::Ready(None),
        };
        let event = Event::default().json_data(message).unwrap_or_default();
        Poll::Ready(Some(Ok(event)))
    }
}
