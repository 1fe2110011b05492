//! Request bytes, HTTP headers, and detection of the legacy era.

use std::time::Duration;

use outlive::{
    client::{
        ClientError, Error, ServerErrorKind,
        input::{InputCallbacks, InputResponse},
        request::result_text,
        transport::VersionCache,
    },
    wire::Version,
};
use serde_json::{Value, json};

use super::{
    kit::builder,
    script::{
        HttpScript, discovered, empty, events, initialized, line, ok, pipe, refuse, said,
        with_status,
    },
};

// VER-01, VER-38, META-01, META-02, STDIO-01, T2C-01
#[tokio::test]
async fn modern_pipe_call_matches_expected_bytes() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => vec![line(request, &said("3"))],
    });
    let client = builder().connect(target).await.unwrap();
    let result = client
        .call_tool("add", json!({"b": 2, "a": 1}))
        .traceparent("00-1-2-01")
        .on_progress(|_| ())
        .await
        .unwrap();
    assert_eq!(result_text(&result), "3");
    client.call_tool("add", json!({})).inline().await.unwrap();
    let me = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities""#;
    let tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    assert_eq!(
        *seen.lock().unwrap(),
        [
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{"_meta":{{{me}:{{}}}}}}}}"#
            ),
            format!(
                r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"add","arguments":{{"b":2,"a":1}},"_meta":{{{me}:{tasks},"traceparent":"00-1-2-01","progressToken":2}}}}}}"#
            ),
            format!(
                r#"{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"add","arguments":{{}},"_meta":{{{me}:{{}}}}}}}}"#
            ),
        ]
    );
}

// VER-17, VER-21, VER-26, VER-41, VER-42, META-15
#[tokio::test]
async fn legacy_pipe_server_gets_handshake_after_any_first_response() {
    for first in [
        json!({"code": -32601, "message": "no"}),
        json!({"code": -32602, "message": "no"}),
        json!({"code": -32000, "message": "no"}),
        Value::Null,
    ] {
        let refusal = first.clone();
        let (target, seen) = pipe(move |request| match request["method"].as_str() {
            Some("server/discover") if refusal.is_null() => Vec::new(),
            Some("server/discover") => {
                vec![json!({"jsonrpc": "2.0", "id": request["id"], "error": refusal}).to_string()]
            }
            Some("initialize") => vec![line(request, &initialized("2025-06-18"))],
            Some("tools/call") => vec![line(request, &json!({"content": []}))],
            _ => Vec::new(),
        });
        let client = builder()
            .limits(|limits| limits.probe_timeout = Duration::from_millis(50))
            .connect(target)
            .await
            .unwrap();
        assert_eq!(client.protocol_version().await.unwrap(), Version::V2025_06_18);
        client.call_tool("add", json!({})).await.unwrap();
        let seen = seen.lock().unwrap();
        let said: Vec<&String> = seen
            .iter()
            .filter(|line| !line.contains("discover") && !line.contains("cancelled"))
            .collect();
        assert_eq!(
            said,
            [
                r#"{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
                r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{}}}"#,
            ],
            "{first}"
        );
    }
}

#[tokio::test]
async fn silent_server_with_pinned_version_times_out() {
    let (target, _seen) = pipe(|_| Vec::new());
    let refused = builder()
        .protocol_version(Version::V2026_07_28)
        .limits(|limits| limits.probe_timeout = Duration::from_millis(50))
        .connect(target)
        .await;
    assert!(matches!(refused, Err(Error::Client(ClientError::TimedOut(_)))), "{refused:?}");
}

// HTTP26-04, HTTP26-05, HTTP26-33, HTTP26-34, HTTP26-35, HTTP26-56, HTTP26-57, HTTP26-58, HTTP26-65
#[tokio::test]
async fn argument_headers_mirror_body_and_mismatch_refreshes_tool_list() {
    let tool = json!({"name": "query", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "none": {"type": "string", "x-mcp-header": "None"},
    }}});
    let peer = HttpScript::new(move |seen, _| {
        let tool = tool.clone();
        async move {
            match seen.method() {
                "server/discover" => ok(&seen, &discovered()),
                "tools/list" => ok(&seen, &json!({"resultType": "complete", "tools": [tool]})),
                _ if seen.header("mcp-param-region").is_none() => {
                    refuse(&seen, 400, -32020, &json!({}))
                }
                _ => ok(&seen, &said("ok")),
            }
        }
    })
    .await;
    let client = builder().token("secret").connect(peer.url.as_str()).await.unwrap();
    let arguments = json!({"region": " Zürich", "count": -7, "dry": true, "none": null});
    client.call_tool("query", arguments).await.unwrap();
    let calls = peer.all("tools/call");
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0].id(), calls[1].id());
    let last = &calls[1];
    for (name, value) in [
        ("accept", Some("application/json, text/event-stream")),
        ("content-type", Some("application/json")),
        ("authorization", Some("Bearer secret")),
        ("mcp-protocol-version", Some("2026-07-28")),
        ("mcp-method", Some("tools/call")),
        ("mcp-name", Some("query")),
        ("mcp-param-region", Some("=?base64?IFrDvHJpY2g=?=")),
        ("mcp-param-count", Some("-7")),
        ("mcp-param-dry", Some("true")),
        ("mcp-param-none", None),
        ("mcp-session-id", None),
    ] {
        assert_eq!(last.header(name), value, "{name}");
    }
    assert_eq!((last.verb.as_str(), last.path.as_str()), ("POST", "/mcp"));
}

// HTTP25-26, HTTP25-29, HTTP25-34, VER-44, VER-45, VER-51
#[tokio::test]
async fn lost_session_is_reopened_and_call_retried() {
    let peer = HttpScript::new(|seen, count| async move {
        match (seen.verb.as_str(), seen.method()) {
            ("GET", _) => empty(405),
            (_, "server/discover") => empty(400),
            (_, "initialize") => {
                let body =
                    json!({"jsonrpc": "2.0", "id": seen.id(), "result": initialized("2025-11-25")});
                with_status(200, &format!("Mcp-Session-Id: s{count}\r\n"), &body)
            }
            (_, "tools/call") if seen.header("mcp-session-id") == Some("s1") => empty(404),
            (_, "tools/call") => ok(&seen, &said("again")),
            _ => empty(202),
        }
    })
    .await;
    let client = builder().connect(peer.url.as_str()).await.unwrap();
    let result = client.call_tool("add", json!({})).await.unwrap();
    assert_eq!(result_text(&result), "again");
    let sessions: Vec<_> = peer
        .all("tools/call")
        .iter()
        .map(|seen| seen.header("mcp-session-id").unwrap().to_owned())
        .collect();
    assert_eq!(sessions, ["s1", "s2"]);
    let initialize = &peer.all("initialize")[1];
    assert_eq!(initialize.header("mcp-session-id"), None);
    assert_eq!(initialize.header("mcp-protocol-version"), None);
    assert_eq!(peer.all("tools/call")[0].header("mcp-protocol-version"), Some("2025-11-25"));
    // HTTP25-30
    client.close().await;
    let seen = peer.seen.lock().unwrap();
    let last = seen.last().unwrap();
    assert_eq!((last.verb.as_str(), last.header("mcp-session-id")), ("DELETE", Some("s2")));
}

// HTTP25-13, HTTP25-14, HTTP25-18, T1C-13
#[tokio::test]
async fn broken_legacy_stream_resumes_with_last_event_id() {
    let peer = HttpScript::new(|seen, _| async move {
        match (seen.verb.as_str(), seen.method()) {
            ("GET", _) if seen.header("last-event-id") == Some("e2") => events(
                "id: e3\ndata: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[]}}\n\n",
            ),
            ("GET", _) => empty(405),
            (_, "server/discover") => empty(404),
            (_, "initialize") => ok(&seen, &initialized("2025-11-25")),
            (_, "tools/call") => events(": hi\n\nid: e1\nretry: 20\ndata: \n\nid: e2\ndata:\n\n"),
            _ => empty(202),
        }
    })
    .await;
    let client = builder().connect(peer.url.as_str()).await.unwrap();
    client.call_tool("add", json!({})).await.unwrap();
}

// HTTP26-22, HTTP26-23, HTTP26-27
#[tokio::test]
async fn broken_modern_stream_fails_without_retry() {
    let peer = HttpScript::new(|seen, _| async move {
        match seen.method() {
            "server/discover" => ok(&seen, &discovered()),
            _ => events("id: 1\nretry: 1\ndata:\n\n"),
        }
    })
    .await;
    let client = builder().connect(peer.url.as_str()).await.unwrap();
    let lost = client.call_tool("pay", json!({})).await.unwrap_err();
    assert!(matches!(lost, Error::Transport(_)), "{lost}");
    assert!(lost.may_have_executed());
    assert_eq!(peer.all("tools/call").len(), 1);
}

// VER-47
#[tokio::test]
async fn auth_rate_limit_and_outage_errors_do_not_trigger_handshake() {
    for (status, reason) in [
        (401, ServerErrorKind::Unauthorized),
        (403, ServerErrorKind::Forbidden),
        (429, ServerErrorKind::RateLimited { retry_after: None }),
    ] {
        let peer = HttpScript::new(move |_, _| async move { empty(status) }).await;
        let refused = builder().connect(peer.url.as_str()).await.unwrap_err();
        assert_eq!(refused.kind(), Some(reason));
        assert!(peer.all("initialize").is_empty());
    }
    let peer = HttpScript::new(|_, _| async { empty(503) }).await;
    let refused = builder().connect(peer.url.as_str()).await.unwrap_err();
    assert!(refused.is_transient(), "{refused}");
    assert!(peer.all("initialize").is_empty());
}

// B-24, VER-03, VER-04, VER-40
#[tokio::test]
async fn unsupported_version_error_does_not_trigger_handshake() {
    let peer = HttpScript::new(|seen, count| async move {
        match (seen.method(), count) {
            ("server/discover", 1) => {
                refuse(&seen, 400, -32022, &json!({"supported": ["2026-07-28"], "requested": "x"}))
            }
            ("server/discover", _) => ok(&seen, &discovered()),
            _ => ok(&seen, &said("ok")),
        }
    })
    .await;
    builder().connect(peer.url.as_str()).await.unwrap().call_tool("a", json!({})).await.unwrap();
    assert!(peer.all("initialize").is_empty());
    let stranger = HttpScript::new(|seen, _| async move {
        refuse(&seen, 400, -32022, &json!({"supported": ["2031-01-01"], "requested": "x"}))
    })
    .await;
    let refused = builder().connect(stranger.url.as_str()).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Client(ClientError::NoCommonVersion(theirs)) if theirs == &["2031-01-01"])
    );
    assert!(stranger.all("initialize").is_empty());
}

// SSE24-04, SSE24-09, SSE24-10
#[tokio::test]
async fn http_with_sse_transport_is_detected_last() {
    use tokio::sync::{Mutex, mpsc};
    let (say, said_on_stream) = mpsc::channel::<String>(8);
    let stream = std::sync::Arc::new(Mutex::new(Some(said_on_stream)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sse", listener.local_addr().unwrap());
    tokio::spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        while let Ok((mut socket, _)) = listener.accept().await {
            let (say, stream) = (say.clone(), std::sync::Arc::clone(&stream));
            tokio::spawn(async move {
                let mut bytes = vec![0; 65536];
                let mut read = socket.read(&mut bytes).await.unwrap();
                while !String::from_utf8_lossy(&bytes[..read]).contains("\r\n\r\n")
                    || (bytes.starts_with(b"POST") && !bytes[..read].ends_with(b"}"))
                {
                    read += socket.read(&mut bytes[read..]).await.unwrap();
                }
                let text = String::from_utf8_lossy(&bytes[..read]).into_owned();
                if text.starts_with("GET") {
                    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: endpoint\ndata: /messages?s=1\n\n";
                    socket.write_all(head.as_bytes()).await.unwrap();
                    let mut messages = stream.lock().await.take().unwrap();
                    while let Some(message) = messages.recv().await {
                        let event = format!("event: message\ndata: {message}\n\n");
                        socket.write_all(event.as_bytes()).await.unwrap();
                    }
                } else if text.starts_with("POST /messages?s=1 ") {
                    let body: Value =
                        serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
                    let result = match body["method"].as_str() {
                        Some("initialize") => initialized("2024-11-05"),
                        _ => json!({"content": []}),
                    };
                    if body.get("id").is_some() {
                        say.send(line(&body, &result)).await.unwrap();
                    }
                    socket
                        .write_all(
                            b"HTTP/1.1 202 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                        )
                        .await
                        .unwrap();
                } else {
                    socket
                        .write_all(
                            b"HTTP/1.1 405 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                        )
                        .await
                        .unwrap();
                }
            });
        }
    });
    let client = builder().connect(url).await.unwrap();
    assert_eq!(client.protocol_version().await.unwrap(), Version::V2024_11_05);
    client.call_tool("add", json!({})).await.unwrap();
}

// M-51, M-52, M-54, M-55, M-56, CACHE-03
#[tokio::test]
async fn round_repeats_call_with_input_responses_and_last_request_state() {
    let (target, seen) = pipe({
        let mut round = 0;
        move |request| match request["method"].as_str() {
            Some("server/discover") => vec![line(request, &discovered())],
            _ => {
                round += 1;
                let question = |message: &str| {
                    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message,
                        "requestedSchema": {"type": "object", "properties": {"x": {"type": "string"}}}}})
                };
                vec![line(
                    request,
                    &match round {
                        1 => {
                            json!({"resultType": "input_required", "requestState": "a\"b\n", "inputRequests": {"k2": question("2"), "k1": question("1")}})
                        }
                        2 => {
                            json!({"resultType": "input_required", "inputRequests": {"k3": question("3")}})
                        }
                        3 => json!({"resultType": "input_required", "requestState": "last"}),
                        _ => said("done"),
                    },
                )]
            }
        }
    });
    let answers = InputCallbacks::new()
        .form(|question| async move { InputResponse::accept(json!({"x": question.key.unwrap()})) });
    let client = builder().input_handler(answers).connect(target).await.unwrap();
    client.call_tool("t", json!({"n": 1})).await.unwrap();
    let seen = seen.lock().unwrap();
    let calls: Vec<Value> =
        seen.iter().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = |key: &str| json!({"action": "accept", "content": {"x": key}});
    let params = |extra: Value| {
        let mut params = json!({"name": "t", "arguments": {"n": 1}});
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        params
    };
    let expected = [
        params(json!({})),
        params(
            json!({"inputResponses": {"k2": answer("k2"), "k1": answer("k1")}, "requestState": "a\"b\n"}),
        ),
        params(json!({"inputResponses": {"k3": answer("k3")}})),
        params(json!({"requestState": "last"})),
    ];
    for (call, expected) in calls.iter().zip(&expected) {
        let mut params = call["params"].clone();
        assert!(params.as_object_mut().unwrap().remove("_meta").is_some());
        assert_eq!(params, *expected);
    }
    let ids: Vec<&Value> = calls.iter().map(|call| &call["id"]).collect();
    assert_eq!(ids, [2, 3, 4, 5]);
}

#[tokio::test]
async fn server_known_as_legacy_gets_no_discovery() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("initialize") => vec![line(request, &initialized("2025-06-18"))],
        _ => Vec::new(),
    });
    let client = builder().older_first().connect(target).await.unwrap();
    assert!(client.is_older().await.unwrap());
    let script = HttpScript::new(|seen, _| async move {
        match seen.method() {
            "initialize" => ok(&seen, &initialized("2025-06-18")),
            _ => empty(202),
        }
    })
    .await;
    let memory = VersionCache::new();
    let url = script.url.as_str();
    let client = builder().version_cache(memory).older_first().connect(url).await.unwrap();
    assert!(client.is_older().await.unwrap());
    assert!(script.all("server/discover").is_empty());
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|line| !line.contains("discover")), "{seen:?}");
}

#[tokio::test]
async fn server_no_longer_legacy_is_detected_as_modern() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => {
            let error = json!({"code": -32601, "message": "no"});
            vec![json!({"jsonrpc": "2.0", "id": request["id"], "error": error}).to_string()]
        }
    });
    let client = builder().older_first().connect(target).await.unwrap();
    assert_eq!(client.protocol_version().await.unwrap(), Version::V2026_07_28);
    assert_eq!(seen.lock().unwrap().len(), 2);
    let script = HttpScript::new(|seen, _| async move {
        match seen.method() {
            "server/discover" => ok(&seen, &discovered()),
            _ => refuse(&seen, 400, -32601, &Value::Null),
        }
    })
    .await;
    let client = builder()
        .version_cache(VersionCache::new())
        .older_first()
        .connect(script.url.as_str())
        .await;
    assert!(!client.unwrap().is_older().await.unwrap());
}
