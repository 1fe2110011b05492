//! Sealed request states: principal, arguments, lifetime, tampering and key rotation.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use outlive::{
    server::{
        Clock, Durable, Principal, Result, SealKeys, Server, ServerBuilder, Tool,
        extract::RawParams,
    },
    wire::{BooleanSchema, RequestedSchema},
};
use serde_json::{Value, json};

use crate::support::pipe::{Pipe, raw, text};

const KEY: [u8; 32] = [7; 32];
const OTHER_KEY: [u8; 32] = [8; 32];

/// A wall clock that the test sets.
#[derive(Clone, Debug)]
struct Wall(Arc<AtomicU64>);

impl Wall {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_800_000_000)))
    }

    fn shift(&self, seconds: i64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).saturating_add_signed(seconds),
            Ordering::Relaxed,
        );
    }
}

impl Clock for Wall {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(span))
    }
}

/// Elicits twice.
async fn ask(cx: Durable, _arguments: RawParams) -> Result<String> {
    let schema = || RequestedSchema::default().with_required("yes", BooleanSchema::default());
    let first: Value = cx.elicit_with("first", "First?", schema()).await?;
    let second: Value = cx.elicit_with("second", "Second?", schema()).await?;
    Ok(format!("{} {}", first["yes"], second["yes"]))
}

fn tool(name: &str) -> Tool {
    Tool::new(name, ask).input_schema(raw(&json!({"type": "object"})))
}

fn builder(keys: SealKeys, wall: &Wall) -> ServerBuilder {
    Server::builder("sealed", "1")
        .seal_keys(keys)
        .clock(wall.clone())
        .track_used_request_states()
        .tool(tool("ask"))
        .tool(tool("other"))
        .tool(tool("narrow").bind_request_state_to(&["repo"]))
        .tool(tool("once").single_use_request_state())
}

fn server(keys: SealKeys, wall: &Wall) -> Server {
    builder(keys, wall).build().unwrap()
}

/// A client of a server, with one principal.
struct Caller(Pipe);

impl Caller {
    fn of(server: &Server) -> Self {
        Self(Pipe::open(server))
    }

    async fn call(&mut self, params: Value) -> Value {
        self.0.modern_with(json!({"elicitation": {}}), "tools/call", params).await
    }

    /// Makes the first call and returns its request state.
    async fn begin(&mut self, tool: &str, arguments: Value) -> String {
        let answer = self.call(json!({"name": tool, "arguments": arguments})).await;
        state_of(&answer)
    }

    /// Sends the next round with a response to the first input request.
    async fn come_back(&mut self, tool: &str, arguments: Value, state: &str) -> Value {
        let params = json!({
            "name": tool,
            "arguments": arguments,
            "requestState": state,
            "inputResponses": {"first": {"action": "accept", "content": {"yes": true}}},
        });
        self.call(params).await
    }
}

#[track_caller]
fn state_of(answer: &Value) -> String {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"]["requestState"].as_str().unwrap().to_owned()
}

/// Asserts the one error that every invalid request state gets.
#[track_caller]
fn refused(answer: &Value) {
    assert_eq!(
        answer["error"],
        json!({
            "code": -32602,
            "message": "`params.requestState` is not valid for this call; call again without it",
            "data": {"reason": "request_state_invalid"},
        }),
        "{answer}"
    );
}

/// Asserts that the server accepted the first response and requests the second.
#[track_caller]
fn accepted(answer: &Value) {
    state_of(answer);
    assert!(answer["result"]["inputRequests"].get("second").is_some(), "{answer}");
}

fn arguments() -> Value {
    json!({"repo": "shop", "count": 1, "nested": {"a": [1, 2], "b": null}})
}

// M-20, M-21, M-23, M-25, M-26, M-28, X-42
#[tokio::test(start_paused = true)]
async fn request_state_is_valid_only_for_its_principal_and_call() {
    let server = server(SealKeys::new(KEY), &Wall::new());
    let mut caller = Caller::of(&server);
    let state = caller.begin("ask", arguments()).await;
    accepted(&caller.come_back("ask", arguments(), &state).await);

    let mut stranger = Caller(Pipe::open_as(&server, Principal::named("other")));
    refused(&stranger.come_back("ask", arguments(), &state).await);
    let mut anonymous = Caller(Pipe::open_as(&server, Principal::ANONYMOUS));
    refused(&anonymous.come_back("ask", arguments(), &state).await);
    refused(&caller.come_back("other", arguments(), &state).await);
    refused(&caller.come_back("ask", json!({"repo": "shop", "count": 2}), &state).await);
    refused(&caller.come_back("ask", json!({}), &state).await);

    // The same arguments in another notation.
    let rewritten = json!({"nested": {"b": null, "a": [1.0, 2]}, "count": 1.0, "repo": "shop"});
    accepted(&caller.come_back("ask", rewritten, &state).await);
}

// M-26: the audience of a request state is its server, even if another server has the same keys
#[tokio::test(start_paused = true)]
async fn request_state_of_another_server_is_rejected() {
    let wall = Wall::new();
    let state = Caller::of(&server(SealKeys::new(KEY), &wall)).begin("ask", arguments()).await;
    let other = Server::builder("another", "1")
        .seal_keys(SealKeys::new(KEY))
        .clock(wall.clone())
        .tool(tool("ask"))
        .build()
        .unwrap();
    refused(&Caller::of(&other).come_back("ask", arguments(), &state).await);
}

#[tokio::test(start_paused = true)]
async fn request_state_is_bound_only_to_declared_arguments() {
    let server = server(SealKeys::new(KEY), &Wall::new());
    let mut caller = Caller::of(&server);
    let state = caller.begin("narrow", json!({"repo": "shop", "verbose": true})).await;
    accepted(&caller.come_back("narrow", json!({"repo": "shop"}), &state).await);
    refused(&caller.come_back("narrow", json!({"repo": "bank"}), &state).await);
}

// M-24
#[tokio::test(start_paused = true)]
async fn request_state_expires_after_its_ttl() {
    let wall = Wall::new();
    let server = server(SealKeys::new(KEY), &wall);
    let mut caller = Caller::of(&server);
    let state = caller.begin("ask", json!({})).await;
    wall.shift(15 * 60 + 30);
    accepted(&caller.come_back("ask", json!({}), &state).await);
    wall.shift(1);
    refused(&caller.come_back("ask", json!({}), &state).await);
    // A clock skew of thirty seconds is tolerated; more is not.
    wall.shift(-(15 * 60 + 31) - 30);
    accepted(&caller.come_back("ask", json!({}), &state).await);
    wall.shift(-1);
    refused(&caller.come_back("ask", json!({}), &state).await);
}

// M-20, M-28
#[tokio::test(start_paused = true)]
async fn tampered_request_state_is_rejected() {
    let limit = outlive::server::RateLimit::per_second(1e9);
    let server =
        builder(SealKeys::new(KEY), &Wall::new()).rate_limit_invalid_rounds(limit).build().unwrap();
    let mut caller = Caller::of(&server);
    let state = caller.begin("ask", json!({})).await;
    for at in 0..state.len() {
        for bit in 0..7 {
            let mut changed = state.clone().into_bytes();
            changed[at] ^= 1 << bit;
            let changed = String::from_utf8(changed).unwrap();
            if changed.contains(|char: char| char.is_ascii_control()) {
                continue;
            }
            refused(&caller.come_back("ask", json!({}), &changed).await);
        }
    }
    for length in 0..state.len() {
        refused(&caller.come_back("ask", json!({}), &state[..length]).await);
    }
    for more in ["A", "=", " ", "\n", "-TAMPERED", &state] {
        refused(&caller.come_back("ask", json!({}), &format!("{state}{more}")).await);
        refused(&caller.come_back("ask", json!({}), &format!("{more}{state}")).await);
    }
    accepted(&caller.come_back("ask", json!({}), &state).await);
}

// M-29
#[tokio::test(start_paused = true)]
async fn request_state_sealed_with_previous_key_is_accepted() {
    let wall = Wall::new();
    let state = Caller::of(&server(SealKeys::new(KEY), &wall)).begin("ask", arguments()).await;
    let rotated = server(SealKeys::new(OTHER_KEY).with_previous(KEY), &wall);
    accepted(&Caller::of(&rotated).come_back("ask", arguments(), &state).await);
    let without = server(SealKeys::new(OTHER_KEY), &wall);
    refused(&Caller::of(&without).come_back("ask", arguments(), &state).await);
}

// M-32, M-45
#[tokio::test(start_paused = true)]
async fn request_state_of_earlier_round_is_accepted_again() {
    let server = server(SealKeys::new(KEY), &Wall::new());
    let mut caller = Caller::of(&server);
    let first = caller.begin("ask", json!({})).await;
    let second = state_of(&caller.come_back("ask", json!({}), &first).await);
    assert_ne!(first, second);
    accepted(&caller.come_back("ask", json!({}), &first).await);
    // A response recorded in an earlier round cannot be replaced.
    let params = json!({
        "name": "ask",
        "arguments": {},
        "requestState": second,
        "inputResponses": {
            "first": {"action": "accept", "content": {"yes": false}},
            "second": {"action": "accept", "content": {"yes": false}},
        },
    });
    let answer = caller.call(params).await;
    assert_eq!(text(&answer["result"]), "true false", "{answer}");
}

// M-27
#[tokio::test(start_paused = true)]
async fn single_use_request_state_is_accepted_once() {
    let server = server(SealKeys::new(KEY), &Wall::new());
    let mut caller = Caller::of(&server);
    let state = caller.begin("once", json!({})).await;
    let next = caller.come_back("once", json!({}), &state).await;
    accepted(&next);
    refused(&caller.come_back("once", json!({}), &state).await);
    // The next round has another request state.
    let params = json!({
        "name": "once",
        "arguments": {},
        "requestState": state_of(&next),
        "inputResponses": {"second": {"action": "accept", "content": {"yes": true}}},
    });
    assert_eq!(text(&caller.call(params).await["result"]), "true true");
}

#[test]
fn single_use_request_state_without_tracking_fails_build() {
    let built =
        Server::builder("sealed", "1").tool(tool("once").single_use_request_state()).build();
    let error = built.unwrap_err().to_string();
    assert!(error.contains("track_used_request_states"), "{error}");
}

// M-17
#[tokio::test(start_paused = true)]
async fn round_without_request_state_starts_call_again() {
    let server = server(SealKeys::new(KEY), &Wall::new());
    let mut caller = Caller::of(&server);
    let first = caller.begin("ask", json!({})).await;
    accepted(&caller.come_back("ask", json!({}), &first).await);
    let answer = caller
        .call(json!({
            "name": "ask",
            "arguments": {},
            "inputResponses": {"second": {"action": "accept", "content": {"yes": true}}},
        }))
        .await;
    assert!(answer["result"]["inputRequests"].get("first").is_some(), "{answer}");
}

//
#[tokio::test(start_paused = true)]
async fn invalid_rounds_of_one_caller_are_rate_limited() {
    let server = server(SealKeys::new(KEY), &Wall::new());
    let mut caller = Caller::of(&server);
    for _ in 0..30 {
        refused(&caller.come_back("ask", json!({}), "AAAA").await);
    }
    let answer = caller.come_back("ask", json!({}), "AAAA").await;
    assert_eq!(answer["error"]["code"], 429, "{answer}");
    assert_eq!(answer["error"]["data"]["limit"], "rate_limit_invalid_rounds", "{answer}");
    // The caller can still make new calls and send valid rounds.
    let state = caller.begin("ask", json!({})).await;
    accepted(&caller.come_back("ask", json!({}), &state).await);
    let nothing =
        json!({"name": "ask", "arguments": {}, "requestState": state, "inputResponses": {}});
    assert_eq!(caller.call(nothing).await["error"]["code"], 429);
}
