//! Servers that show how cost grows with the payload and with the number of tools.

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    extract::DefaultBodyLimit,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt,
};
use outlive::server::{Args, Server, Tool};

use super::control_http::{modern_result, respond};

/// Maximum message size here. The default of 4 MiB would leave no room around the largest payload.
const LONGEST: usize = 16 << 20;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct EchoArgs {
    message: String,
}

async fn echo(Args(args): Args<EchoArgs>) -> String {
    args.message
}

/// The control for large payloads: axum and serde_json, without the protocol and without limits.
pub(super) async fn control() -> Result<(u16, impl Sized)> {
    let router = Router::new().route("/mcp", post(answer)).layer(DefaultBodyLimit::disable());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((port, serving))
}

async fn answer(body: Bytes) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    match respond(&body, modern_result) {
        Ok(answer) => ([(header::CONTENT_TYPE, JSON)], answer).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// Our server with this many tools; calls use one of them.
pub(super) async fn ours(tools: usize) -> Result<(u16, impl Sized)> {
    let serving = server(tools)?.serve_http("127.0.0.1:0", super::unlimited()).await?;
    Ok((serving.address().port(), serving))
}

/// The same on standard input and output.
pub(super) fn ours_stdio(tools: usize) -> Result<()> {
    Ok(super::runtime()?.block_on(server(tools)?.serve_stdio())?)
}

fn server(tools: usize) -> Result<Server> {
    let tool = |name: &str| Tool::new(name, echo).description("Returns its argument");
    let mut builder = Server::builder("bench", "1.0.0")
        .limits(|limits| limits.max_message_bytes = LONGEST)
        .tool(tool("echo"));
    for number in 1..tools {
        builder = builder.tool(tool(&format!("tool_{number:05}")));
    }
    Ok(builder.build()?)
}
