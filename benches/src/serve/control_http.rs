//! The control: the cost of the same response bytes with axum and serde_json, without the protocol.
//!
//! It deserializes only the needed members and checks nothing. Its responses equal those of our
//! server byte for byte.

use std::borrow::Cow;

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
    serve::ListenerExt,
};
use serde::{Deserialize, Serialize};

/// Listens on a free port.
pub(super) async fn start() -> Result<(u16, impl Sized)> {
    let router = Router::new()
        .route("/mcp", post(modern))
        .route("/page", post(page))
        .route("/legacy", post(legacy));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    // As our listener does: a response is one write and is sent immediately.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((port, serving))
}

async fn modern(body: Bytes) -> Response {
    answer(&body, |message| ModernResult {
        result_type: "complete",
        meta: META,
        content: [Content::text(message)],
    })
}

/// The same for a page in a browser, with CORS headers.
async fn page(body: Bytes) -> Response {
    const ORIGIN: HeaderValue = HeaderValue::from_static("http://localhost");
    const READS: HeaderValue =
        HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After");
    let mut response = modern(body).await;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ORIGIN);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, READS);
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    response
}

async fn legacy(body: Bytes) -> Response {
    answer(&body, |message| LegacyResult { content: [Content::text(message)] })
}

fn answer<R: Serialize>(body: &[u8], result: impl FnOnce(String) -> R) -> Response {
    const JSON: HeaderValue = HeaderValue::from_static("application/json");
    match respond(body, result) {
        Ok(answer) => ([(header::CONTENT_TYPE, JSON)], answer).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

/// Parses a call and writes its response. Also used by the control for pipes.
pub(super) fn respond<R: Serialize>(
    body: &[u8],
    result: impl FnOnce(String) -> R,
) -> Result<Vec<u8>, serde_json::Error> {
    let Request { id, method: _, params } = serde_json::from_slice(body)?;
    let Params { name: _, arguments } = params;
    serde_json::to_vec(&Answer { jsonrpc: "2.0", id, result: result(arguments.message) })
}

/// The result of a call on a pipe.
pub(super) fn modern_result(message: String) -> impl Serialize {
    ModernResult { result_type: "complete", meta: META, content: [Content::text(message)] }
}

#[derive(Deserialize)]
struct Request<'a> {
    id: u64,
    #[serde(borrow)]
    #[expect(dead_code, reason = "deserialized as in any server, though nothing depends on it")]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Params<'a>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    #[expect(dead_code, reason = "deserialized as in any server, though there is only one tool")]
    name: Cow<'a, str>,
    arguments: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    message: String,
}

#[derive(Serialize)]
struct Answer<R> {
    jsonrpc: &'static str,
    id: u64,
    result: R,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModernResult {
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: Meta,
    content: [Content; 1],
}

#[derive(Serialize)]
struct LegacyResult {
    content: [Content; 1],
}

#[derive(Serialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: ServerInfo,
}

#[derive(Serialize)]
struct ServerInfo {
    name: &'static str,
    version: &'static str,
}

const META: Meta = Meta { server_info: ServerInfo { name: "bench", version: "1.0.0" } };

#[derive(Serialize)]
struct Content {
    r#type: &'static str,
    text: String,
}

impl Content {
    fn text(text: String) -> Self {
        Self { r#type: "text", text }
    }
}
