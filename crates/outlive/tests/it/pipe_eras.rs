//! Both eras on one pipe, and the handshakes of all versions.

use outlive::server::{Cx, Json, LoggingLevel, Prompt, Resource, Server, State, Tool, VersionSet};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::support::{
    gate::Gate,
    pipe::{LEGACY, MODERN, Pipe, REVISIONS, error, result, text, with_meta},
};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

#[derive(Serialize, JsonSchema)]
struct Caller {
    capabilities: Value,
    name: Option<String>,
    session: bool,
}

/// Returns the data that a call has about its client, and logs a message of every level.
async fn who(cx: Cx) -> Json<Caller> {
    LoggingLevel::ALL.into_iter().for_each(|level| cx.log(level, "line"));
    Json(Caller {
        capabilities: serde_json::from_str(cx.call().client_capabilities()).unwrap(),
        name: cx.client_info().map(|info| info.name),
        session: cx.session().is_some(),
    })
}

async fn wait(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    "done"
}

fn builder(gate: &Gate) -> outlive::server::ServerBuilder {
    Server::builder("test", "1.2.3")
        .instructions("Ask nicely.")
        .logging(true)
        .tool(Tool::new("who", who))
        .tool(Tool::new("wait", wait))
        .resource(Resource::new("mem://a", "a", async || "a"))
        .prompt(Prompt::new("p", async || "p"))
        .state(gate.clone())
}

fn server() -> Server {
    builder(&Gate::default()).build().unwrap()
}

// VER-18, VER-19, VER-37
#[tokio::test(start_paused = true)]
async fn handshake_with_known_version_returns_that_version() {
    for version in LEGACY {
        let mut pipe = Pipe::open(&server());
        let hello = pipe.legacy(version).await;
        assert_eq!(hello["protocolVersion"], version);
        assert_eq!(hello["serverInfo"], json!({"name": "test", "version": "1.2.3"}));
        assert_eq!(hello["instructions"], "Ask nicely.");
        assert_eq!(hello["capabilities"]["tools"], json!({"listChanged": true}));
        let members: Vec<_> = hello.as_object().unwrap().keys().collect();
        assert_eq!(
            members,
            ["protocolVersion", "capabilities", "serverInfo", "instructions"],
            "{version}"
        );
    }
}

// VER-18, VER-25, VER-26
#[tokio::test(start_paused = true)]
async fn handshake_with_unknown_version_returns_newest_legacy_version() {
    for asked in ["2026-07-28", "2031-01-01", "1999-01-01", "draft", ""] {
        let mut pipe = Pipe::open(&server());
        assert_eq!(pipe.legacy(asked).await["protocolVersion"], "2025-11-25", "{asked}");
        assert_eq!(pipe.result("ping", json!({})).await, json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn handshake_without_version_is_rejected_and_retryable() {
    let mut pipe = Pipe::open(&server());
    for params in [json!({}), json!({"protocolVersion": 7}), json!({"protocolVersion": null})] {
        let id = pipe.send_as_is("initialize", params).await;
        assert_eq!(error(&pipe.answer(id).await)["code"], -32602);
    }
    pipe.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"none\",\"method\":\"initialize\"}\n").await;
    assert_eq!(error(&pipe.answer("none").await)["code"], -32602);
    assert_eq!(pipe.legacy("2025-06-18").await["protocolVersion"], "2025-06-18");
}

// PING-01, VER-33
#[tokio::test(start_paused = true)]
async fn request_without_meta_before_handshake_is_rejected_except_ping() {
    let mut pipe = Pipe::open(&server());
    let id = pipe.send_as_is("ping", json!({})).await;
    assert_eq!(result(&pipe.answer(id).await), json!({}));
    for method in
        ["tools/list", "tools/call", "resources/subscribe", "logging/setLevel", "no/such/method"]
    {
        let id = pipe.send_as_is(method, json!({"name": "who"})).await;
        let refusal = error(&pipe.answer(id).await);
        assert_eq!(refusal["code"], -32602, "{method}");
        let message = refusal["message"].as_str().unwrap();
        assert!(message.contains(VERSION) && message.contains("initialize"), "{message}");
    }
    for version in LEGACY {
        pipe.legacy(version).await;
        assert_eq!(pipe.result("ping", json!({})).await, json!({}), "{version}");
    }
}

// VER-32, PING-03, LOG-06, RES-10, C-09
#[tokio::test(start_paused = true)]
async fn legacy_methods_in_modern_requests_are_method_not_found() {
    let mut pipe = Pipe::open(&server());
    for session in [None, Some("2025-11-25")] {
        if let Some(version) = session {
            pipe.legacy(version).await;
        }
        for (method, params) in [
            (
                "initialize",
                json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}),
            ),
            ("ping", json!({})),
            ("logging/setLevel", json!({"level": "info"})),
            ("resources/subscribe", json!({"uri": "mem://a"})),
            ("resources/unsubscribe", json!({"uri": "mem://a"})),
        ] {
            let refusal = error(&pipe.modern(method, params).await);
            assert_eq!(refusal["code"], -32601, "{session:?}: {method}");
        }
    }
}

// VER-32
#[tokio::test(start_paused = true)]
async fn modern_methods_in_session_are_method_not_found() {
    for version in LEGACY {
        let mut pipe = Pipe::speaking(&server(), version).await;
        for (method, params) in
            [("server/discover", json!({})), ("subscriptions/listen", json!({"notifications": {}}))]
        {
            assert_eq!(pipe.error(method, params).await["code"], -32601, "{version}: {method}");
        }
    }
}

// VER-05, VER-07, VER-08, VER-36, META-07, CACHE-01
#[tokio::test(start_paused = true)]
async fn discovery_returns_server_info_and_capabilities() {
    let mut pipe = Pipe::open(&server());
    let discovered = pipe.result("server/discover", json!({})).await;
    let expected = json!({
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "test", "version": "1.2.3"}},
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
        "instructions": "Ask nicely.",
    });
    assert_eq!(discovered, expected);
}

// META-01, META-03
#[tokio::test(start_paused = true)]
async fn modern_request_without_required_meta_key_is_rejected() {
    let mut pipe = Pipe::open(&server());
    for (meta, named) in [
        (json!({CAPABILITIES: {}}), VERSION),
        (json!({VERSION: null, CAPABILITIES: {}}), VERSION),
        (json!({VERSION: 20260728, CAPABILITIES: {}}), VERSION),
        (json!({VERSION: MODERN}), CAPABILITIES),
        (json!({VERSION: MODERN, CAPABILITIES: null}), CAPABILITIES),
        (json!({VERSION: MODERN, CAPABILITIES: []}), CAPABILITIES),
        (json!({VERSION: MODERN, CAPABILITIES: "all"}), CAPABILITIES),
    ] {
        for method in ["tools/list", "server/discover", "ping"] {
            let id = pipe.send_as_is(method, json!({"_meta": meta})).await;
            let refusal = error(&pipe.answer(id).await);
            assert_eq!(refusal["code"], -32602, "{meta}");
            assert!(refusal["message"].as_str().unwrap().contains(named), "{meta}: {refusal}");
        }
    }
}

// META-02, META-16, RPC-12, TRACE-03
#[tokio::test(start_paused = true)]
async fn modern_request_with_other_meta_keys_is_accepted() {
    let mut pipe = Pipe::open(&server());
    for extra in [
        json!({}),
        json!({"io.modelcontextprotocol/clientInfo": {"name": "probe", "version": "0"}}),
        json!({"traceparent": "not a trace", "tracestate": 7, "baggage": null}),
        json!({"com.example/own": [1, 2], "bare": {}}),
    ] {
        let params = with_meta(json!({"_meta": extra, "unknown": {"member": true}}));
        let id = pipe.send_as_is("tools/list", params).await;
        assert_eq!(result(&pipe.answer(id).await)["tools"][0]["name"], "who", "{extra}");
    }
}

// VER-02, RPC-25, VER-36
#[tokio::test(start_paused = true)]
async fn unsupported_version_error_lists_served_versions() {
    let mut pipe = Pipe::open(&server());
    let supported = pipe.result("server/discover", json!({})).await["supportedVersions"].clone();
    for version in ["2031-01-01", "DRAFT-2026-v1", "", "2025-11-25", "2024-11-05"] {
        // The version is checked before everything that depends on it.
        for method in ["tools/list", "ping", "no/such/method"] {
            let id = pipe.send_as_is(method, json!({"_meta": {VERSION: version}})).await;
            let refusal = error(&pipe.answer(id).await);
            assert_eq!(refusal["code"], -32022, "{version}: {refusal}");
            assert_eq!(refusal["data"], json!({"supported": supported, "requested": version}));
        }
    }
}

// VER-29, VER-14, META-04, C-08, LOG-03
#[tokio::test(start_paused = true)]
async fn modern_request_does_not_see_session_on_same_pipe() {
    for version in LEGACY {
        let mut pipe = Pipe::open(&server());
        pipe.legacy_with(version, json!({"sampling": {}, "roots": {"listChanged": true}})).await;
        pipe.result("logging/setLevel", json!({"level": "alert"})).await;

        // A call in the session has the session's capabilities, client name and log level.
        let id = pipe.send("tools/call", json!({"name": "who"})).await;
        let messages = pipe.read_to(id).await;
        assert_eq!(messages.len(), 3, "{version}: {messages:?}");
        let caller: Value = serde_json::from_str(text(&result(&messages[2]))).unwrap();
        let declared = json!({"sampling": {}, "roots": {"listChanged": true}});
        assert_eq!(caller, json!({"capabilities": declared, "name": "test", "session": true}));

        // A modern request has only its own values.
        let answer = pipe.modern("tools/call", json!({"name": "who"})).await;
        let nobody = json!({"capabilities": {}, "name": null, "session": false});
        assert_eq!(result(&answer)["structuredContent"], nobody, "{version}");

        let meta = json!({
            CAPABILITIES: {"elicitation": {}},
            "io.modelcontextprotocol/clientInfo": {"name": "other", "version": "1"},
            "io.modelcontextprotocol/logLevel": "emergency",
        });
        let params = with_meta(json!({"name": "who", "_meta": meta}));
        let id = pipe.send_as_is("tools/call", params).await;
        let messages = pipe.read_to(id).await;
        assert_eq!(messages.len(), 2, "{version}: {messages:?}");
        assert_eq!(messages[0]["params"]["level"], "emergency");
        let other = json!({"capabilities": {"elicitation": {}}, "name": "other", "session": false});
        assert_eq!(result(&messages[1])["structuredContent"], other, "{version}");

        // The modern requests leave the session unchanged.
        let id = pipe.send("tools/call", json!({"name": "who"})).await;
        assert_eq!(pipe.read_to(id).await.len(), 3, "{version}");
    }
}

// VER-15, VER-28, VER-29, VER-34
#[tokio::test(start_paused = true)]
async fn concurrent_calls_of_both_eras_are_cancelled_by_id() {
    let gate = Gate::default();
    let mut pipe = Pipe::open(&builder(&gate).build().unwrap());
    pipe.legacy("2025-11-25").await;
    let call = json!({"name": "wait"});
    let mut ids = Vec::new();
    for round in 0..4 {
        let params = if round % 2 == 0 { call.clone() } else { with_meta(call.clone()) };
        ids.push(pipe.send_as_is("tools/call", params).await);
        gate.arrived().await;
    }
    pipe.cancel(ids[0]).await;
    gate.abandoned().await;
    pipe.cancel(ids[1]).await;
    gate.abandoned().await;
    gate.open(2);
    let mut answers = [pipe.read().await, pipe.read().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers[0]["id"], ids[2]);
    assert_eq!(answers[0]["result"].get("resultType"), None);
    assert_eq!(answers[1]["id"], ids[3]);
    assert_eq!(answers[1]["result"]["resultType"], "complete");
    pipe.quiet().await;
}

// VER-30
#[tokio::test(start_paused = true)]
async fn second_handshake_replaces_session() {
    let mut pipe = Pipe::open(&server());
    pipe.legacy("2025-11-25").await;
    pipe.result("logging/setLevel", json!({"level": "emergency"})).await;
    let structured = |result: &Value| result.get("structuredContent").is_some();
    let id = pipe.send("tools/call", json!({"name": "who"})).await;
    let messages = pipe.read_to(id).await;
    assert_eq!(messages.len(), 2);
    assert!(structured(&messages[1]["result"]));

    pipe.legacy_with("2024-11-05", json!({"roots": {}})).await;
    let id = pipe.send("tools/call", json!({"name": "who"})).await;
    let messages = pipe.read_to(id).await;
    assert_eq!(messages.len(), 8, "the level is the default again: {messages:?}");
    let result = result(&messages[7]);
    assert!(!structured(&result), "2024-11-05 has no structured content");
    let caller: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(caller["capabilities"], json!({"roots": {}}));
}

// RPC-09, META-07, VER-37, C-25
#[tokio::test(start_paused = true)]
async fn results_have_members_of_their_era() {
    let requests = [
        ("tools/list", json!({})),
        ("tools/call", json!({"name": "who"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "mem://a"})),
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "p"})),
    ];
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(), version).await;
        if version != MODERN {
            pipe.result("logging/setLevel", json!({"level": "emergency"})).await;
        }
        for (method, params) in &requests {
            let id = pipe.send(method, params.clone()).await;
            let result = result(pipe.read_to(id).await.last().unwrap());
            let modern = [
                result.get("resultType").is_some(),
                result["_meta"].get("io.modelcontextprotocol/serverInfo").is_some(),
            ];
            assert_eq!(modern, [version == MODERN; 2], "{version}: {method}: {result}");
            if version != MODERN {
                assert_eq!(
                    result.get("ttlMs").or(result.get("cacheScope")),
                    None,
                    "{version}: {method}"
                );
            }
        }
    }
}

// VER-27
#[tokio::test(start_paused = true)]
async fn modern_only_server_rejects_pipe_handshake_with_its_versions() {
    let mut pipe = Pipe::open(
        &builder(&Gate::default()).protocol_versions(VersionSet::modern()).build().unwrap(),
    );
    for asked in ["2025-11-25", "2024-11-05"] {
        let params = json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let id = pipe.send_as_is("initialize", params).await;
        let refusal = error(&pipe.answer(id).await);
        assert_eq!(refusal["code"], -32022);
        assert_eq!(refusal["data"], json!({"supported": [MODERN], "requested": asked}));
    }
    let id = pipe.send_as_is("ping", json!({})).await;
    assert_eq!(error(&pipe.answer(id).await)["code"], -32602);
    pipe.send_raw(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n").await;
    assert_eq!(error(&pipe.read().await)["code"], -32600);
    assert_eq!(
        pipe.result("server/discover", json!({})).await["supportedVersions"],
        json!([MODERN])
    );
}

// VER-41 relies on this: a probing client must not take the server for a modern one.
#[tokio::test(start_paused = true)]
async fn legacy_only_server_ignores_modern_meta() {
    let mut pipe = Pipe::open(
        &builder(&Gate::default()).protocol_versions(VersionSet::legacy()).build().unwrap(),
    );
    let refusal = error(&pipe.modern("server/discover", json!({})).await);
    assert_eq!(refusal["code"], -32602);
    assert!(refusal["message"].as_str().unwrap().contains("initialize"), "{refusal}");
    assert_eq!(pipe.legacy("2026-07-28").await["protocolVersion"], "2025-11-25");
    // A legacy server ignores unknown `_meta` keys.
    pipe.send_as_is("tools/list", with_meta(json!({}))).await;
    let answer: Value = serde_json::from_str(&pipe.read_line().await.unwrap()).unwrap();
    assert_eq!(result(&answer).get("resultType"), None);
    assert_eq!(error(&pipe.modern("server/discover", json!({})).await)["code"], -32601);
}

#[test]
fn server_without_protocol_versions_fails_build() {
    let refused =
        builder(&Gate::default()).protocol_versions([].into_iter().collect()).build().unwrap_err();
    assert_eq!(refused.to_string(), "`protocol_versions` has no version; name at least one");
}
