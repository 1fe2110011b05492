//! Lines that are not valid messages, and their responses.
//!
//! Every test checks that the pipe still works afterwards.

use outlive::server::{Args, Cx, Server, State, Tool};
use serde_json::{Value, json};

use crate::support::{
    gate::Gate,
    pipe::{LEGACY, MODERN, Pipe, REVISIONS, error, result, text, with_meta},
};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    text: String,
}

async fn echo(Args(echo): Args<Echo>) -> String {
    echo.text
}

async fn tell(cx: Cx) -> &'static str {
    cx.progress(1.0, None, "");
    "told"
}

async fn wait(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    "done"
}

fn server(gate: &Gate) -> Server {
    Server::builder("test", "1")
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("wait", wait))
        .tool(Tool::new("tell", tell))
        .state(gate.clone())
        .limits(|limits| {
            limits.max_message_bytes = 2_000;
            limits.max_batch = 5;
        })
        .build()
        .unwrap()
}

/// Sends a line and expects an error, on a new pipe of each version. The pipe must still work
/// afterwards.
async fn refused(line: impl AsRef<[u8]>, id: Option<Value>, code: i64) {
    let line = line.as_ref();
    let shown = String::from_utf8_lossy(line);
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(&Gate::default()), version).await;
        pipe.send_raw(&[line, b"\n"].concat()).await;
        let answer = pipe.read().await;
        assert_eq!(error(&answer)["code"], code, "{version}: {shown}: {answer}");
        assert_eq!(answer.get("id"), id.as_ref(), "{version}: {shown}: {answer}");
        assert_eq!(text(&pipe.call("echo", json!({"text": "alive"})).await), "alive");
    }
}

/// Sends lines and expects no response, on a new pipe of each version.
async fn ignored(lines: impl AsRef<[u8]>) {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(&Gate::default()), version).await;
        pipe.send_raw(&[lines.as_ref(), b"\n"].concat()).await;
        // The next message must be the response to this call.
        assert_eq!(text(&pipe.call("echo", json!({"text": "alive"})).await), "alive");
        pipe.quiet().await;
    }
}

// RPC-15, STDIO-18
#[tokio::test(start_paused = true)]
async fn line_that_is_not_json_is_parse_error_without_id() {
    refused("nonsense", None, -32700).await;
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"ping""#, None, -32700).await;
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"ping"} trailing"#, None, -32700).await;
    refused(r#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#, None, -32700).await;
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"\ud800"}"#, None, -32700).await;
}

// RPC-01
#[tokio::test(start_paused = true)]
async fn line_that_is_not_utf8_is_parse_error() {
    refused(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}", None, -32700).await;
    refused(b"\xfe\xff", None, -32700).await;
}

// RPC-05, RPC-06, RPC-15
#[tokio::test(start_paused = true)]
async fn json_line_that_is_not_a_message_is_invalid_request() {
    for line in ["42", "null", "true", "\"ping\"", "{}"] {
        refused(line, None, -32600).await;
    }
    let one = Some(json!(1));
    refused(r#"{"id":1,"method":"ping"}"#, one.clone(), -32600).await;
    refused(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, one.clone(), -32600).await;
    refused(r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, one.clone(), -32600).await;
    refused(r#"{"jsonrpc":"2.0","id":1}"#, one.clone(), -32600).await;
    refused(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, one.clone(), -32600).await;
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":"all"}"#, one.clone(), -32600)
        .await;
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#, one.clone(), -32600).await;
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#, one.clone(), -32600).await;
    refused(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#, one, -32600)
        .await;
    refused(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, None, -32600).await;
}

// RPC-02
#[tokio::test(start_paused = true)]
async fn pipe_request_id_of_other_type_is_invalid_request() {
    for id in ["null", "1.5", "1e3", "1.0", "[1]", "{}", "true"] {
        refused(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#), None, -32600).await;
    }
}

#[tokio::test(start_paused = true)]
async fn params_that_are_not_an_object_are_invalid_params() {
    refused(r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, Some(json!(1)), -32602)
        .await;
    refused(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":7}}"#,
        Some(json!(1)),
        -32602,
    )
    .await;
    // An array with the values of a modern `_meta` is not a `_meta`.
    let meta = r#"["2026-07-28",{},{"name":"x","version":"1"},"info",1]"#;
    let params = format!(r#"{{"name":"echo","arguments":{{"text":"x"}},"_meta":{meta}}}"#);
    let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
    refused(line, Some(json!(1)), -32602).await;
}

// SEC-06
#[tokio::test(start_paused = true)]
async fn line_nested_over_limit_is_rejected() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let call = |value: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{value}}}}}"#)
    };
    refused(call(&deep(200)), None, -32600).await;
    // Brackets inside strings do not nest.
    let mut pipe = Pipe::speaking(&server(&Gate::default()), MODERN).await;
    let brackets = "[{\\\"".repeat(150);
    let answer = pipe.call("echo", json!({"text": brackets})).await;
    assert_eq!(text(&answer), brackets);
}

// SEC-06, STDIO-18
#[tokio::test(start_paused = true)]
async fn line_over_limit_is_rejected_once_and_next_line_works() {
    let long = "x".repeat(100_000);
    refused(&long, None, -32600).await;
    // The line arrives in pieces; its end comes long after the limit.
    let mut pipe = Pipe::speaking(&server(&Gate::default()), MODERN).await;
    for _ in 0..5 {
        pipe.send_raw(long.as_bytes()).await;
    }
    assert_eq!(error(&pipe.read().await)["code"], -32600);
    pipe.send_raw(b"\n").await;
    assert_eq!(text(&pipe.call("echo", json!({"text": "alive"})).await), "alive");
}

#[tokio::test(start_paused = true)]
async fn line_at_size_limit_is_accepted() {
    let mut pipe = Pipe::speaking(&server(&Gate::default()), MODERN).await;
    let message = with_meta(json!({"name": "echo", "arguments": {"text": ""}}));
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": message}).to_string();
    for (extra, fits) in [(2_000, true), (2_001, false)] {
        let padding = "x".repeat(extra - message.len());
        let line = message.replace(r#""text":"""#, &format!(r#""text":"{padding}""#));
        assert_eq!(line.len(), extra);
        pipe.send_raw(format!("{line}\n").as_bytes()).await;
        assert_eq!(pipe.read().await.get("result").is_some(), fits);
    }
}

// STDIO-18
#[tokio::test(start_paused = true)]
async fn blank_lines_are_ignored() {
    ignored("\n\n  \n\t\r\n\r\n").await;
}

// STDIO-18
#[tokio::test(start_paused = true)]
async fn lines_with_carriage_return_or_split_writes_are_read() {
    let mut pipe = Pipe::speaking(&server(&Gate::default()), "2025-11-25").await;
    pipe.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}\r\n").await;
    assert_eq!(result(&pipe.answer("a").await), json!({}));
    pipe.send_raw(b"  {\"jsonrpc\":\"2.0\",\"id\":\"b\",\"method\":\"ping\"}  \n").await;
    assert_eq!(result(&pipe.answer("b").await), json!({}));
    for byte in b"{\"jsonrpc\":\"2.0\",\"id\":\"c\",\"method\":\"ping\"}\n" {
        pipe.send_raw(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(pipe.read().await["id"], "c");
    pipe.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"d\",\"method\":\"ping\"}\n{\"jsonrpc\":\"2.0\",\"id\":\"e\",\"method\":\"ping\"}\n").await;
    assert_eq!(pipe.read().await["id"], "d");
    assert_eq!(pipe.read().await["id"], "e");
}

#[tokio::test(start_paused = true)]
async fn last_line_without_newline_gets_response() {
    let mut pipe = Pipe::speaking(&server(&Gate::default()), "2025-11-25").await;
    pipe.send_raw(br#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#).await;
    pipe.finish().await;
    let messages = pipe.read_to_end().await;
    assert_eq!(messages, [json!({"jsonrpc": "2.0", "id": "last", "result": {}})]);
}

// RPC-08, CANC-05, PROG-06
#[tokio::test(start_paused = true)]
async fn notification_gets_no_response() {
    for method in [
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
        "notifications/unknown",
        "tools/call",
        "initialize",
    ] {
        for params in
            ["", r#","params":{}"#, r#","params":[1]"#, r#","params":7"#, r#","params":null"#]
        {
            ignored(format!(r#"{{"jsonrpc":"2.0","method":"{method}"{params}}}"#)).await;
        }
    }
    let requests = ["7", "\"x\"", "null", "[]", "{}"];
    for id in requests {
        let params = format!(r#"{{"requestId":{id},"reason":5}}"#);
        ignored(format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}"#
        ))
        .await;
    }
}

// VER-35, RPC-07
#[tokio::test(start_paused = true)]
async fn unsolicited_response_is_ignored() {
    ignored(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    ignored(r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"no"}}"#).await;
    ignored(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}"#).await;
    ignored(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#).await;
}

// RPC-02
#[tokio::test(start_paused = true)]
async fn request_id_is_echoed_byte_for_byte() {
    let ids = [
        "1",
        "\"1\"",
        "0",
        "-5",
        "9007199254740993",
        "123456789012345678901234567890",
        "\"\"",
        r#""a\"b\\c""#,
        r#""\u00e9\/\n""#,
        "\"é\"",
        "\"null\"",
    ];
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(&Gate::default()), version).await;
        let params = if version == MODERN { with_meta(json!({})) } else { json!({}) };
        for method in ["tools/list", "no/such/method"] {
            for id in ids {
                let line = format!(
                    "{{\"method\":\"{method}\",\"params\":{params},\"id\":{id},\"jsonrpc\":\"2.0\"}}\n"
                );
                pipe.send_raw(line.as_bytes()).await;
                let answer = pipe.read_line().await.unwrap();
                assert!(answer.contains(&format!(r#""id":{id},"#)), "{version}: {id}: {answer}");
            }
        }
    }
}

// RPC-16
#[tokio::test(start_paused = true)]
async fn unknown_method_is_named_in_error() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(&Gate::default()), version).await;
        let refusal = pipe.error("tools/serve", json!({})).await;
        assert_eq!(refusal, json!({"code": -32601, "message": "unknown method `tools/serve`"}));
        // The error repeats only the first 80 characters of a long name.
        let refusal = pipe.error(&"m".repeat(1_000), json!({})).await;
        assert_eq!(refusal["message"], format!("unknown method `{}`", "m".repeat(80)));
    }
}

// RPC-03
#[tokio::test(start_paused = true)]
async fn request_id_in_use_is_rejected_until_response() {
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe = Pipe::speaking(&server(&gate), version).await;
        let first = pipe.send("tools/call", json!({"name": "wait"})).await;
        gate.arrived().await;
        let params = if version == MODERN { with_meta(json!({})) } else { json!({}) };
        let again =
            json!({"jsonrpc": "2.0", "id": first, "method": "tools/list", "params": params});
        pipe.send_json(&again).await;
        let refusal = pipe.answer(first).await;
        assert_eq!(error(&refusal)["code"], -32600, "{version}: {refusal}");
        gate.open(1);
        // The first call is not affected.
        assert_eq!(text(&result(&pipe.answer(first).await)), "done", "{version}");
        pipe.send_json(&again).await;
        assert_eq!(result(&pipe.answer(first).await)["tools"].as_array().unwrap().len(), 3);
        // The string `"3"` is another ID than the number `3`.
        let third = pipe.send("tools/call", json!({"name": "wait"})).await;
        gate.arrived().await;
        let mut text_id = again;
        text_id["id"] = json!(third.to_string());
        pipe.send_json(&text_id).await;
        assert!(pipe.answer(third.to_string()).await.get("result").is_some(), "{version}");
    }
}

// RPC-29, STDIO-16
#[tokio::test(start_paused = true)]
async fn batch_in_version_without_batches_is_rejected() {
    for version in REVISIONS.into_iter().filter(|version| *version != "2025-03-26") {
        let mut pipe = Pipe::speaking(&server(&Gate::default()), version).await;
        pipe.send_raw(b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]\n").await;
        let answer = pipe.read().await;
        assert_eq!(error(&answer)["code"], -32600, "{version}");
        assert_eq!(answer.get("id"), None, "{version}");
        assert_eq!(text(&pipe.call("echo", json!({"text": "alive"})).await), "alive");
    }
    refused("[]", None, -32600).await;
}

// RPC-27, STDIO-16
#[tokio::test(start_paused = true)]
async fn batch_in_2025_03_26_returns_batch() {
    let mut pipe = Pipe::speaking(&server(&Gate::default()), LEGACY[1]).await;
    let batch = json!([
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}},
        {"jsonrpc": "2.0", "id": "b", "method": "no/such/method"},
        {"jsonrpc": "2.0", "id": "x", "result": {}},
        7,
    ]);
    pipe.send_json(&batch).await;
    let answers = pipe.read().await;
    let answers = answers.as_array().unwrap();
    assert_eq!(answers.len(), 3, "{answers:?}");
    assert_eq!(answers[0], json!({"jsonrpc": "2.0", "id": "a", "result": {}}));
    assert_eq!(answers[1]["id"], "b");
    assert_eq!(answers[1]["error"]["code"], -32601);
    assert_eq!(answers[2]["error"]["code"], -32600);
    // A batch without requests gets no response.
    pipe.send_raw(b"[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}]\n").await;
    pipe.quiet().await;
    pipe.send_json(&json!([[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]])).await;
    assert_eq!(pipe.read().await[0]["error"]["code"], -32600);
    pipe.send_json(&Value::Array(vec![json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}); 6]))
        .await;
    assert_eq!(error(&pipe.read().await)["code"], -32600, "a batch over the limit");
}

// RPC-27: a batch contains responses or notifications, not both.
#[tokio::test(start_paused = true)]
async fn progress_of_batch_call_is_sent_outside_batch_response() {
    let mut pipe = Pipe::speaking(&server(&Gate::default()), LEGACY[1]).await;
    let params = json!({"name": "tell", "_meta": {"progressToken": "t"}});
    let call = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": params});
    pipe.send_json(&json!([call, {"jsonrpc": "2.0", "id": "b", "method": "ping"}])).await;
    let told = pipe.read().await;
    assert_eq!(told["method"], "notifications/progress", "{told}");
    let answers = pipe.read().await;
    let ids: Vec<_> = answers.as_array().unwrap().iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, ["a", "b"]);
}

// RPC-28
#[tokio::test(start_paused = true)]
async fn pipe_handshake_in_batch_is_rejected() {
    let mut pipe = Pipe::speaking(&server(&Gate::default()), LEGACY[1]).await;
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    pipe.send_json(
        &json!([{"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}]),
    )
    .await;
    let answers = pipe.read().await;
    assert_eq!(answers[0]["id"], "i");
    assert_eq!(answers[0]["error"]["code"], -32600);
    // The session is unchanged: it still accepts batches.
    pipe.send_raw(b"[{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}]\n").await;
    assert_eq!(pipe.read().await[0]["id"], "p");
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_of_batch_get_individual_responses() {
    let gate = Gate::default();
    let mut pipe = Pipe::speaking(&server(&gate), LEGACY[1]).await;
    let call = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "wait"}});
    let ping = json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"});
    // The second request with the same ID is rejected, as it would be outside a batch.
    pipe.send_json(&json!([call("slow"), ping, call("slow")])).await;
    let at_once = pipe.read().await;
    assert_eq!(at_once[0]["id"], "ping");
    assert_eq!(at_once[1]["id"], "slow");
    assert_eq!(at_once[1]["error"]["code"], -32600);
    gate.open(2);
    assert_eq!(text(&result(&pipe.answer("slow").await)), "done");
    pipe.quiet().await;
}
