//! A response is one JSON body, or an event stream if the call sends anything before its result.

use std::time::Duration;

use outlive::server::http::HttpConfig;
use serde_json::{Value, json};

use crate::support::http::{Event, HttpFixture, MODERN, Piece, Request};

#[tokio::test]
async fn discovery_returns_versions_capabilities_and_instructions() {
    // VER-05, VER-07, VER-08
    let server =
        HttpFixture::build(HttpConfig::new(), |server| server.instructions("Use it well.")).await;
    let result = server.send(Request::modern("server/discover")).await.result();
    assert_eq!(
        result,
        json!({
            "resultType": "complete",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "standard", "version": "1.0.0"}},
            "ttlMs": 0,
            "cacheScope": "private",
            "supportedVersions": [MODERN],
            "capabilities": {
                "tools": {"listChanged": true},
                "resources": {"subscribe": true, "listChanged": true},
                "prompts": {"listChanged": true},
                "completions": {},
                "logging": {},
            },
            "instructions": "Use it well.",
        })
    );
}

#[tokio::test]
async fn fast_call_returns_one_json_body() {
    // HTTP26-08, RPC-05, RPC-09
    let server = HttpFixture::start().await;
    let response = server.send(Request::call("sum", json!({"a": 2, "b": 3})).id("c-1")).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(response.header("mcp-session-id"), None);
    assert_eq!(
        response.json(),
        json!({
            "jsonrpc": "2.0",
            "id": "c-1",
            "result": {
                "resultType": "complete",
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "standard", "version": "1.0.0"}},
                "content": [{"type": "text", "text": "{\"sum\":5}"}],
                "structuredContent": {"sum": 5},
            },
        })
    );
}

#[tokio::test]
async fn calls_need_no_discovery_and_share_connections() {
    // VER-14, VER-15: many clients on one connection, one client on many connections.
    let server = HttpFixture::start().await;
    let mut shared = server.connect().await;
    for (round, info) in ["one", "two", "one"].into_iter().enumerate() {
        let text = format!("{info} {round}");
        let call = Request::call("echo", json!({"text": text}))
            .reserved("clientInfo", json!({"name": info, "version": "1"}));
        assert_eq!(shared.send(&call).await.text(), text);
        assert_eq!(server.send(&call).await.text(), text);
    }
}

#[tokio::test]
async fn pipelined_requests_get_responses_in_order() {
    let server = HttpFixture::start().await;
    let calls: Vec<Request> =
        (0..5).map(|n| Request::call("echo", json!({"text": n.to_string()})).id(n)).collect();
    let mut connection = server.connect().await;
    connection.write(&calls.iter().flat_map(Request::bytes).collect::<Vec<u8>>()).await;
    for (n, call) in calls.iter().enumerate() {
        let response = connection.response(call).await;
        assert_eq!(
            (response.json()["id"].as_u64(), response.text()),
            (Some(n as u64), n.to_string())
        );
    }
}

#[tokio::test]
async fn modern_call_with_progress_is_stream_without_event_ids() {
    // HTTP26-16, HTTP26-18, HTTP26-19, HTTP26-24, PROG-03, PROG-07
    let server = HttpFixture::start().await;
    let call = Request::call("count", json!({"key": "p", "to": 3}))
        .meta("progressToken", json!("p4"))
        .id("c-4");
    let mut stream = server.open(call).await;
    assert_eq!(stream.header("cache-control"), Some("no-cache"));
    assert_eq!(stream.header("x-accel-buffering"), Some("no"));
    assert_eq!(stream.header("mcp-session-id"), None);
    for step in 1..=3 {
        let expected = json!({
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": "p4", "progress": step, "total": 3, "message": format!("step {step}")},
        });
        let (event, message) = stream.said().await;
        assert_eq!(message, expected);
        // Events have no ID and no retry, so the client cannot resume.
        assert_eq!(event, Event { data: event.data.clone(), ..Event::default() });
        server.world.release("p");
    }
    let (event, last) = stream.said().await;
    assert_eq!(event.id, None);
    assert_eq!(last["id"], "c-4");
    assert_eq!(last["result"]["content"][0]["text"], "counted 3");
    assert_eq!(last["result"]["resultType"], "complete");
    stream.ended().await;
}

#[tokio::test]
async fn connection_is_reusable_after_stream() {
    let server = HttpFixture::start().await;
    let call = Request::call("count", json!({"to": 0})).accept("text/event-stream");
    let mut stream = server.open(call).await;
    assert_eq!(stream.message().await["result"]["content"][0]["text"], "counted 0");
    let mut connection = stream.ended().await;
    let next = connection.send(&Request::call("echo", json!({"text": "next"}))).await;
    assert_eq!(next.text(), "next");
}

#[tokio::test]
async fn progress_without_token_opens_no_stream() {
    let server = HttpFixture::start().await;
    let call = Request::call("count", json!({"key": "q", "to": 1}));
    let mut connection = server.begin(&call).await;
    server.world.started("q").await;
    server.world.release("q");
    assert_eq!(connection.response(&call).await.text(), "counted 1");
}

#[tokio::test]
async fn progress_token_is_echoed_with_its_type() {
    // PROG-08
    let server = HttpFixture::start().await;
    for token in [json!(7), json!("7")] {
        let call = Request::call("count", json!({"key": "t", "to": 1}))
            .meta("progressToken", token.clone());
        let mut stream = server.open(call).await;
        assert_eq!(stream.message().await["params"]["progressToken"], token);
        server.world.release("t");
        stream.message().await;
        stream.ended().await;
    }
}

#[tokio::test]
async fn log_messages_are_sent_only_at_requested_level() {
    // LOG-03, LOG-04, C-13
    let server = HttpFixture::start().await;
    let call = Request::call("log", json!({"key": "l"}));
    let mut connection = server.begin(&call).await;
    server.world.started("l").await;
    server.world.release("l");
    assert_eq!(connection.response(&call).await.text(), "logged", "no level requested: no stream");

    let mut stream = server.open(call.reserved("logLevel", json!("error"))).await;
    for level in ["error", "critical", "alert", "emergency"] {
        let line = stream.message().await;
        assert_eq!(line["method"], "notifications/message");
        assert_eq!(
            line["params"],
            json!({"level": level, "logger": "log", "data": {"level": level}})
        );
    }
    server.world.release("l");
    assert_eq!(stream.message().await["result"]["content"][0]["text"], "logged");
    stream.ended().await;
}

#[tokio::test]
async fn silent_call_becomes_stream_after_delay() {
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::from_millis(1))).await;
    let mut stream = server.open(Request::call("wait", json!({"key": "w"}))).await;
    server.world.release("w");
    assert_eq!(stream.message().await["result"]["content"][0]["text"], "waited w");
    stream.ended().await;
}

#[tokio::test]
async fn quiet_stream_sends_keep_alive_comments() {
    // HTTP26-20
    let config = HttpConfig::new()
        .stream_after(Duration::ZERO)
        .keep_alive_interval(Duration::from_millis(5));
    let server = HttpFixture::with(config).await;
    let mut stream = server.open(Request::call("wait", json!({"key": "k"}))).await;
    for _ in 0..3 {
        assert_eq!(stream.piece().await, Ok(Some(Piece::Comment)));
    }
    server.world.release("k");
    assert_eq!(stream.message().await["result"]["content"][0]["text"], "waited k");
    stream.ended().await;
}

#[tokio::test]
async fn client_accepting_only_json_gets_json() {
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    // Tools that are silent, that send something before they first wait, and that also send later.
    let rows = [
        ("wait", json!({"key": "j"}), 1, "waited j"),
        ("count", json!({"key": "j", "to": 1}), 1, "counted 1"),
        ("count", json!({"key": "j", "to": 3}), 3, "counted 3"),
        ("log", json!({"key": "j"}), 1, "logged"),
    ];
    for (tool, arguments, releases, text) in rows {
        let call = Request::call(tool, arguments)
            .meta("progressToken", json!(1))
            .reserved("logLevel", json!("debug"))
            .accept("application/json");
        let mut connection = server.begin(&call).await;
        server.world.started("j").await;
        (0..releases).for_each(|_| server.world.release("j"));
        let response = connection.response(&call).await;
        assert_eq!(response.header("content-type"), Some("application/json"), "{tool}");
        assert_eq!(response.text(), text);
    }
}

#[tokio::test]
async fn client_accepting_only_sse_gets_stream() {
    let server = HttpFixture::start().await;
    let call = Request::call("echo", json!({"text": "e"})).accept("text/event-stream").id(5);
    let response = server.send(&call).await;
    assert_eq!(response.status(), 200);
    let messages = response.messages();
    assert_eq!(messages.len(), 1);
    assert_eq!(
        (&messages[0]["id"], &messages[0]["result"]["content"][0]["text"]),
        (&json!(5), &json!("e"))
    );
}

#[tokio::test]
async fn error_after_stream_start_is_last_event() {
    // META-06, HTTP26-11
    let server = HttpFixture::start().await;
    let call =
        Request::call("sample_late", json!({"key": "s"})).meta("progressToken", json!(1)).id(6);
    let mut stream = server.open(call).await;
    assert_eq!(stream.message().await["method"], "notifications/progress");
    server.world.release("s");
    let last = stream.message().await;
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!(6), &json!(-32021)));
    assert_eq!(last["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    stream.ended().await;
}

#[tokio::test]
async fn modern_stream_is_not_resumable() {
    // HTTP26-22, C-19: `close_stream` and `Last-Event-ID` have no effect.
    let server = HttpFixture::start().await;
    let call = Request::call("leave", json!({"key": "d"}));
    let mut connection = server.begin(&call).await;
    server.world.started("d").await;
    server.world.release("d");
    assert_eq!(connection.response(&call).await.text(), "left and came back");

    let echo = Request::call("echo", json!({"text": "x"})).header("last-event-id", "0-0");
    assert_eq!(server.send(&echo).await.text(), "x");
}

#[tokio::test]
async fn modern_request_ignores_session_id() {
    // HTTP26-12, HTTP26-13
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    for id in [session.id.as_str(), "unknown", ""] {
        let response =
            server.send(Request::call("whoami", json!({})).header("mcp-session-id", id)).await;
        assert_eq!(response.text(), "anonymous");
        assert_eq!(response.header("mcp-session-id"), None);
        assert_eq!(response.result()["resultType"], "complete");
    }
}

#[tokio::test]
async fn modern_results_have_result_type_and_cache_hints() {
    // RPC-09, CACHE-01: `resultType` in every result, cache hints where the version has them.
    let server = HttpFixture::start().await;
    let rows = [
        (Request::modern("tools/list"), true),
        (Request::modern("resources/list"), true),
        (Request::modern("resources/templates/list"), true),
        (Request::modern("resources/read").uri("mem://a"), true),
        (Request::modern("prompts/list"), true),
        (
            Request::modern("prompts/get").name("greet").param("arguments", json!({"name": "you"})),
            false,
        ),
        (Request::call("echo", json!({"text": "x"})), false),
    ];
    for (request, cacheable) in rows {
        let result: Value = server.send(&request).await.result();
        assert_eq!(result["resultType"], "complete", "{result}");
        assert_eq!(
            result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "standard",
            "{result}"
        );
        assert_eq!(result.get("ttlMs").is_some(), cacheable, "{result}");
        assert_eq!(result.get("cacheScope").is_some(), cacheable, "{result}");
    }
}

#[tokio::test]
async fn expect_continue_gets_100_before_body() {
    let server = HttpFixture::start().await;
    let call = Request::call("echo", json!({"text": "x"})).header("expect", "100-continue");
    let mut connection = server.connect().await;
    connection.write(&call.head_bytes()).await;
    assert_eq!(connection.response(&call).await.status(), 100);
    connection.write(&call.body_bytes()).await;
    assert_eq!(connection.response(&call).await.text(), "x");
}
