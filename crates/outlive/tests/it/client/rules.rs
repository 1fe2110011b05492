//! Rules of the specification for clients that no other file covers.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    client::{
        ClientError, Error, ServerErrorKind,
        input::{InputCallbacks, InputResponse},
        notifications::ListenFilter,
        request::result_text,
        transport::{Token, TokenError, TokenRequest, TokenSource},
    },
    wire::Version,
};
use serde_json::{Value, json};

use super::{
    kit::builder,
    script::{
        HttpScript, ask, discovered, empty, events, initialized, line, ok, pipe, refuse, said,
    },
};

/// An input handler for every kind of input request.
fn everything() -> InputCallbacks {
    InputCallbacks::new()
        .form(|_| async { InputResponse::Decline })
        .url(|_| async { InputResponse::accept_url() })
        .sampling_with_tools(|_| async {
            let message = json!({"role": "assistant", "model": "m", "stopReason": "endTurn",
                "content": {"type": "text", "text": "hi"}});
            InputResponse::Message(serde_json::from_value(message).unwrap())
        })
        .roots([("file:///a", "a")])
}

fn messages(seen: &Mutex<Vec<String>>) -> Vec<Value> {
    seen.lock().unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

// RPC-14, STDIO-06, META-17, SAMP-01, ELIC-01, ROOT-01, ROOT-03
#[tokio::test]
async fn modern_requests_declare_capabilities_and_server_requests_get_no_response() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => vec![
            json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"}).to_string(),
            line(request, &said("ok")),
        ],
    });
    let client = builder().input_handler(everything()).connect(target).await.unwrap();
    for _ in 0..3 {
        client.call_tool("t", json!({})).inline().await.unwrap();
    }
    client.notify_roots_changed().await.unwrap();
    client.ping().await.unwrap();
    let can =
        json!({"roots": {}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}});
    for message in messages(&seen) {
        assert!(message.get("method").is_some(), "no response: {message}");
        assert_ne!(message["method"], "notifications/roots/list_changed");
        let declared = &message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert_eq!(*declared, can, "every request declares them");
    }
}

// STDIO-06, SAMP-01, SAMP-07, ELIC-01, ROOT-01, ROOT-03, T1C-06
#[tokio::test]
async fn legacy_server_requests_get_responses_and_roots_changes_are_notified() {
    let related = json!({"io.modelcontextprotocol/related-task": {"taskId": "t7"}});
    let meta = related.clone();
    let mut call = Value::Null;
    let (target, seen) = pipe(move |message| {
        match (message["method"].as_str(), message["id"].as_str()) {
            (Some("initialize"), _) => vec![line(message, &initialized("2025-11-25"))],
            (Some("tools/call"), _) => {
                call = message.clone();
                let form = json!({"type": "object", "properties": {}});
                let form = json!({"message": "?", "requestedSchema": form, "_meta": meta});
                let prompt = json!({"messages": [], "maxTokens": 5, "_meta": meta});
                vec![
                    ask("roots", "roots/list", json!({})),
                    ask("form", "elicitation/create", form),
                    ask("sample", "sampling/createMessage", prompt),
                ]
            }
            (Some("ping"), _) => vec![line(message, &json!({}))],
            // The response to the last input request ends the call.
            (_, Some("sample")) => vec![line(&call, &json!({"content": []}))],
            _ => Vec::new(),
        }
    });
    let client = builder().input_handler(everything()).protocol_version(Version::V2025_11_25);
    let client = client.connect(target).await.unwrap();
    client.call_tool("t", json!({})).await.unwrap();
    client.notify_roots_changed().await.unwrap();
    // The client writes messages in order, so the notification precedes this ping.
    client.ping().await.unwrap();
    let messages = messages(&seen);
    let declared = &messages[0]["params"]["capabilities"];
    assert_eq!(declared["elicitation"], json!({"form": {}, "url": {}}));
    assert_eq!(declared["sampling"], json!({"tools": {}}));
    assert_eq!(declared["roots"], json!({"listChanged": true}));
    let answer = |id: &str| messages.iter().find(|message| message["id"] == id).unwrap();
    assert_eq!(answer("roots")["result"]["roots"][0]["uri"], "file:///a");
    assert_eq!(answer("form")["result"], json!({"action": "decline", "_meta": related}));
    let sampled = &answer("sample")["result"];
    assert_eq!(
        (&sampled["role"], &sampled["model"], &sampled["stopReason"], &sampled["_meta"]),
        (&json!("assistant"), &json!("m"), &json!("endTurn"), &related)
    );
    let told = |message: &Value| message["method"] == "notifications/roots/list_changed";
    assert!(messages.iter().any(told), "{messages:?}");
}

// VER-24
#[tokio::test]
async fn abandoned_handshake_sends_no_cancellation() {
    let (target, seen) = pipe(|_| Vec::new());
    let connecting = builder().protocol_version(Version::V2025_11_25).connect(target);
    assert!(tokio::time::timeout(Duration::from_millis(50), connecting).await.is_err());
    // A cancellation would be written before the pipe closes.
    tokio::task::yield_now().await;
    let messages = messages(&seen);
    assert!(messages.iter().all(|message| message["method"] == "initialize"), "{messages:?}");
}

// HTTP26-09, HTTP26-21, HTTP26-25, HTTP26-50, HTTP26-54, HTTP26-59
#[tokio::test]
async fn http_call_reads_json_and_sse_and_sends_argument_headers() {
    let tool = |name: &str, kind: &str| {
        json!({"name": name, "inputSchema": {"type": "object", "properties": {
            "region": {"type": kind, "x-mcp-header": "Region"},
        }}})
    };
    let tools = json!([tool("good", "string"), tool("bad", "object")]);
    let peer = HttpScript::new(move |seen, count| {
        let tools = tools.clone();
        async move {
            match seen.method() {
                "server/discover" => ok(&seen, &discovered()),
                "tools/list" => ok(&seen, &json!({"resultType": "complete", "tools": tools})),
                _ if count == 1 => ok(&seen, &said("as JSON")),
                _ => {
                    let answer = json!({"jsonrpc": "2.0", "id": seen.id(), "result": said("as events")});
                    events(&format!(
                        ": a comment\r\n\r\nevent: message\r\nunknown: field\r\ndata:{answer}\r\n\r\n"
                    ))
                }
            }
        }
    })
    .await;
    let client = builder().connect(peer.url.as_str()).await.unwrap();
    let names: Vec<String> =
        client.list_tools().collect().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["good"], "a tool with an invalid header annotation is skipped");
    for (region, expected) in [("us west 1", "as JSON"), ("", "as events")] {
        let result = client.call_tool("good", json!({"region": region})).await.unwrap();
        assert_eq!(result_text(&result), expected);
        assert_eq!(peer.all("tools/call").last().unwrap().header("mcp-param-region"), Some(region));
    }
}

// HTTP26-30
#[tokio::test]
async fn modern_http_call_is_cancelled_by_disconnect() {
    let peer = HttpScript::new(|seen, count| async move {
        match seen.method() {
            "server/discover" => ok(&seen, &discovered()),
            "tools/call" if count == 1 => std::future::pending().await,
            _ => ok(&seen, &said("ok")),
        }
    })
    .await;
    let client = builder().connect(peer.url.as_str()).await.unwrap();
    let late = client.call_tool("t", json!({})).timeout(Duration::from_millis(50)).await;
    assert!(matches!(late, Err(Error::Client(ClientError::TimedOut(_)))), "{late:?}");
    client.call_tool("t", json!({})).await.unwrap();
    assert!(peer.all("notifications/cancelled").is_empty());
}

// HTTP25-03, HTTP25-19
#[tokio::test]
async fn legacy_http_posts_one_message_and_opens_get_stream() {
    let peer = HttpScript::new(|seen, _| async move {
        let form = json!({"type": "object", "properties": {}});
        let question = json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create",
            "params": {"message": "?", "requestedSchema": form}});
        match (seen.verb.as_str(), seen.method()) {
            ("GET", _) if seen.header("last-event-id") == Some("e1") => events(
                "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[]}}\n\n",
            ),
            ("GET", _) => empty(405),
            (_, "initialize") => ok(&seen, &initialized("2025-11-25")),
            (_, "tools/call") => events(&format!("id: e1\nretry: 20\ndata: {question}\n\n")),
            _ => empty(202),
        }
    })
    .await;
    let client = builder().input_handler(everything()).protocol_version(Version::V2025_11_25);
    let client = client.connect(peer.url.as_str()).await.unwrap();
    client.call_tool("t", json!({})).await.unwrap();
    let seen = peer.seen.lock().unwrap();
    let answer = seen.iter().find(|seen| *seen.id() == "q").unwrap();
    assert_eq!(answer.body["result"], json!({"action": "decline"}));
    for seen in seen.iter() {
        let accept = seen.header("accept").unwrap();
        assert!(accept.contains("text/event-stream"), "{seen:?}");
        assert!(seen.verb == "GET" || accept.contains("application/json"), "{seen:?}");
        assert!(seen.verb == "GET" || seen.body.is_object(), "one message each: {seen:?}");
    }
}

// SUB-10
#[tokio::test]
async fn dropped_subscription_sends_cancellation() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        Some("subscriptions/listen") => {
            let meta = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
            vec![
                json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                "params": {"notifications": {"toolsListChanged": true}, "_meta": meta}})
                .to_string(),
            ]
        }
        Some("notifications/cancelled") => Vec::new(),
        _ => vec![line(request, &said("ok"))],
    });
    let client = builder().connect(target).await.unwrap();
    drop(client.listen(ListenFilter::new().tools()).await.unwrap());
    client.ping().await.unwrap();
    let messages = messages(&seen);
    let listen =
        messages.iter().find(|message| message["method"] == "subscriptions/listen").unwrap();
    let ended = messages.iter().find(|message| message["method"] == "notifications/cancelled");
    assert_eq!(ended.unwrap()["params"]["requestId"], listen["id"]);
}

// SUB-14
#[cfg(unix)]
#[tokio::test]
async fn subscription_survives_child_process_restart() {
    // Accepts a subscription, then exits.
    const SCRIPT: &str = r#"
id() { echo "$1" | sed 's/.*"id":\([0-9]*\),.*/\1/'; }
read -r line
echo '{"jsonrpc":"2.0","id":'$(id "$line")',"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}}'
read -r line
echo "$line" >&2
echo '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":'$(id "$line")'}}}'
"#;
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&said);
    let program = outlive::client::transport::ChildProcess::new("sh")
        .args(["-c", SCRIPT])
        .on_stderr(move |line| noted.lock().unwrap().push(line.to_owned()));
    let client = builder().connect(program).await.unwrap();
    let mut changes = client.listen(ListenFilter::new().tools()).await.unwrap();
    let next = tokio::time::timeout(Duration::from_secs(20), changes.next()).await.unwrap();
    assert!(
        matches!(next, Some(outlive::client::notifications::ServerNotification::Reconnected)),
        "{next:?}"
    );
    let said = said.lock().unwrap();
    let listens = said.iter().filter(|line| line.contains("subscriptions/listen")).count();
    assert!(listens >= 2, "{said:?}");
}

// TOOL-12, PROMPT-03, COMPL-02
#[tokio::test]
async fn requests_have_members_of_the_schema() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        Some("prompts/get") => vec![line(request, &json!({"messages": []}))],
        Some("completion/complete") => {
            vec![line(request, &json!({"completion": {"values": ["Oslo"]}}))]
        }
        _ => vec![line(request, &said("ok"))],
    });
    let client = builder().connect(target).await.unwrap();
    client.call_tool("t", json!({"n": 1})).await.unwrap();
    client.get_prompt("p").arg("language", "rust").await.unwrap();
    client.get_prompt("p").await.unwrap();
    let cities = client.complete_prompt("travel", "city", "Os").with("country", "no");
    assert_eq!(cities.await.unwrap().values, ["Oslo"]);
    client.complete_resource("city://{name}", "name", "Os").await.unwrap();
    let params: Vec<Value> = messages(&seen)[1..]
        .iter()
        .map(|message| {
            let mut params = message["params"].clone();
            params.as_object_mut().unwrap().remove("_meta");
            params
        })
        .collect();
    let argument = |name: &str| json!({"name": name, "value": "Os"});
    assert_eq!(
        params,
        [
            json!({"name": "t", "arguments": {"n": 1}}),
            json!({"name": "p", "arguments": {"language": "rust"}}),
            json!({"name": "p"}),
            json!({"ref": {"type": "ref/prompt", "name": "travel"}, "argument": argument("city"),
                "context": {"arguments": {"country": "no"}}}),
            json!({"ref": {"type": "ref/resource", "uri": "city://{name}"}, "argument": argument("name")}),
        ]
    );
}

// PAGE-03, PAGE-05
#[tokio::test]
async fn list_with_pages_of_any_size_is_complete() {
    let sizes = [2, 0, 3, 1];
    let (target, seen) = pipe(move |request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => {
            let at: usize =
                request["params"]["cursor"].as_str().map_or(0, |at| at.parse().unwrap());
            let tools: Vec<Value> = (0..sizes[at])
                .map(|n| json!({"name": format!("{at}-{n}"), "inputSchema": {}}))
                .collect();
            let mut page = json!({"resultType": "complete", "tools": tools});
            if at + 1 < sizes.len() {
                page["nextCursor"] = json!((at + 1).to_string());
            }
            vec![line(request, &page)]
        }
    });
    let client = builder().connect(target).await.unwrap();
    assert_eq!(client.list_tools().collect().await.unwrap().len(), 6);
    assert_eq!(seen.lock().unwrap().len(), 5);
}

/// A source with a new token each time the test increments the counter.
struct Tokens(Arc<AtomicUsize>);

impl TokenSource for Tokens {
    async fn token(&self, _: &TokenRequest<'_>) -> Result<Option<Token>, TokenError> {
        Ok(Some(Token::bearer(format!("token-{}", self.0.load(Ordering::SeqCst)))))
    }
}

// CACHE-04, CACHE-08
#[tokio::test]
async fn cached_read_is_shared_per_uri_and_scope() {
    for (scope, reads) in [("private", 3), ("public", 2)] {
        let peer = HttpScript::new(move |seen, _| async move {
            match seen.method() {
                "server/discover" => ok(&seen, &discovered()),
                _ => {
                    let uri = &seen.body["params"]["uri"];
                    let contents = json!([{"uri": uri, "text": uri}]);
                    let result = json!({"resultType": "complete", "contents": contents, "ttlMs": 60_000, "cacheScope": scope});
                    ok(&seen, &result)
                }
            }
        })
        .await;
        let who = Arc::new(AtomicUsize::new(1));
        let client = builder().token_source(Tokens(Arc::clone(&who)));
        let client = client.connect(peer.url.as_str()).await.unwrap();
        for uri in ["file:///a", "file:///b", "file:///a"] {
            let read = serde_json::to_value(client.read_resource(uri).await.unwrap()).unwrap();
            assert_eq!(read["contents"][0]["text"], uri);
        }
        who.store(2, Ordering::SeqCst);
        client.read_resource("file:///a").await.unwrap();
        assert_eq!(peer.all("resources/read").len(), reads, "{scope}");
    }
}

// ELIC-16, ELIC-17, M-59
#[tokio::test]
async fn url_elicitation_shows_origin_and_is_never_fetched() {
    let peer = HttpScript::new(|seen, count| async move {
        match (seen.method(), count) {
            ("server/discover", _) => ok(&seen, &discovered()),
            ("tools/call", 1) => {
                let url = format!("http://{}/pay", seen.header("host").unwrap());
                let params =
                    json!({"mode": "url", "message": "Pay", "url": url, "elicitationId": "e"});
                let question = json!({"method": "elicitation/create", "params": params});
                ok(
                    &seen,
                    &json!({"resultType": "input_required", "inputRequests": {"k": question}}),
                )
            }
            _ => ok(&seen, &said("paid")),
        }
    })
    .await;
    let shown = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&shown);
    let answers = InputCallbacks::new().url(move |question| {
        let outlive::client::input::InputKind::Url(url) = &question.request else {
            panic!("{question:?}")
        };
        noted.lock().unwrap().push((question.server.to_string(), url.url.clone()));
        async { InputResponse::accept_url() }
    });
    let client = builder().input_handler(answers).connect(peer.url.as_str()).await.unwrap();
    client.call_tool("t", json!({})).await.unwrap();
    let shown = shown.lock().unwrap();
    let url = peer.url.replace("/mcp", "/pay");
    assert_eq!(*shown, [(peer.url.clone(), url)]);
    assert!(peer.seen.lock().unwrap().iter().all(|seen| seen.path == "/mcp"));
}

// ROOT-05
#[tokio::test]
async fn root_without_file_scheme_is_not_sent() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => {
            let asked = json!({"k": {"method": "roots/list", "params": {}}});
            vec![line(request, &json!({"resultType": "input_required", "inputRequests": asked}))]
        }
    });
    let answers = InputCallbacks::new().roots([("https://example.com", "a")]);
    let client = builder().input_handler(answers).connect(target).await.unwrap();
    let error = client.call_tool("t", json!({})).await.unwrap_err();
    assert!(matches!(error, Error::Client(ClientError::InvalidInputResponse(_))), "{error}");
    assert_eq!(seen.lock().unwrap().len(), 2);
}

// ARS-20, SEC-10
#[tokio::test]
async fn token_is_absent_from_debug_and_error_texts() {
    let peer = HttpScript::new(|seen, _| async move {
        match seen.method() {
            "server/discover" => ok(&seen, &discovered()),
            _ => refuse(&seen, 401, -32000, &json!({})),
        }
    })
    .await;
    let source = outlive::client::transport::StaticToken::new("hush-hush");
    let builder = builder().token("hush-hush");
    let mut texts = vec![format!("{source:?} {builder:?}")];
    let client = builder.connect(peer.url.as_str()).await.unwrap();
    let refused = client.call_tool("t", json!({})).await.unwrap_err();
    assert_eq!(refused.kind(), Some(ServerErrorKind::Unauthorized), "{refused}");
    texts.push(format!("{client:?} {refused} {refused:?}"));
    assert_eq!(peer.all("tools/call")[0].header("authorization"), Some("Bearer hush-hush"));
    for text in texts {
        assert!(!text.contains("hush"), "{text}");
    }
}

// M-50, M-53, M-62
#[tokio::test]
async fn input_requests_of_one_round_run_concurrently_and_rounds_stay_separate() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ if request["params"].get("requestState").is_some() => vec![line(request, &said("ok"))],
        _ => {
            let form = json!({"type": "object", "properties": {}});
            let form = json!({"method": "elicitation/create", "params": {"message": "?", "requestedSchema": form}});
            let state = request["params"]["arguments"]["n"].to_string();
            vec![line(
                request,
                &json!({"resultType": "input_required", "requestState": state,
                    "inputRequests": {"one": form, "two": form}}),
            )]
        }
    });
    // Input responses are sent only after all four input requests, two per call, have arrived.
    let all = Arc::new(tokio::sync::Barrier::new(4));
    let answers = InputCallbacks::new().form(move |_| {
        let all = Arc::clone(&all);
        async move {
            all.wait().await;
            InputResponse::Decline
        }
    });
    let client = builder().input_handler(answers).connect(target).await.unwrap();
    let calls = [1, 2].map(|n| client.call_tool("t", json!({"n": n})).into_future());
    let [first, second] = calls;
    let (first, second) = tokio::join!(first, second);
    first.unwrap();
    second.unwrap();
    for message in messages(&seen).iter().filter(|it| it["params"].get("requestState").is_some()) {
        let params = &message["params"];
        assert_eq!(params["requestState"], params["arguments"]["n"].to_string());
        assert_eq!(params["inputResponses"].as_object().unwrap().len(), 2);
    }
}
