//! Servers that violate the protocol: the client bounds its work and reports the violation.

use std::time::Duration;

use outlive::client::{
    ClientError, Error,
    input::{InputCallbacks, InputResponse},
    request::result_text,
    transport::TransportErrorKind,
};
use serde_json::json;

use super::{
    kit::builder,
    script::{HttpScript, discovered, line, ok, pipe, said},
};

// PAGE-02, PAGE-07
#[tokio::test]
async fn endless_list_fails_as_cursor_loop_or_too_many_pages() {
    for (circles, expect_circle) in [(true, true), (false, false)] {
        let (target, _) = pipe(move |request| match request["method"].as_str() {
            Some("server/discover") => vec![line(request, &discovered())],
            _ => {
                // An empty string is a valid cursor.
                let at = request["params"]["cursor"].as_str().map_or(0, |at| at.len() + 1);
                let next = if circles { "x".repeat(at % 3) } else { "x".repeat(at) };
                vec![line(
                    request,
                    &json!({"resultType": "complete", "tools": [], "nextCursor": next}),
                )]
            }
        });
        let client =
            builder().limits(|limits| limits.max_pages = 20).connect(target).await.unwrap();
        let error = client.list_tools().collect().await.unwrap_err();
        match (&error, expect_circle) {
            (Error::Client(ClientError::CursorLoop), true)
            | (Error::Client(ClientError::TooManyPages(20)), false) => {}
            _ => panic!("{error}"),
        }
    }
}

// JSCH-10, TOOL-29
#[tokio::test]
async fn invalid_list_entry_is_skipped() {
    let (target, _) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        Some("tools/list") => {
            let tools = json!([{"name": "a", "inputSchema": {}}, {"name": 7}, {"name": "b", "inputSchema": true}]);
            vec![line(request, &json!({"tools": tools}))]
        }
        _ => vec![line(request, &json!({"content": [{"type": "hologram", "x": 1}]}))],
    });
    let client = builder().connect(target).await.unwrap();
    let names: Vec<String> =
        client.list_tools().collect().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(client.call_tool("a", json!({})).await.unwrap().content.len(), 1);
}

// M-57
#[tokio::test(start_paused = true)]
async fn endless_rounds_fail_at_limit() {
    for with_questions in [true, false] {
        let (target, seen) = pipe(move |request| match request["method"].as_str() {
            Some("server/discover") => vec![line(request, &discovered())],
            _ => {
                let mut asked = json!({"resultType": "input_required", "requestState": "s"});
                if with_questions {
                    asked["inputRequests"] = json!({"k": {"method": "roots/list", "params": {}}});
                }
                vec![line(request, &asked)]
            }
        });
        let answers = InputCallbacks::new().roots([("file:///a", "a")]);
        let client = builder().input_handler(answers).connect(target).await.unwrap();
        let error = client.call_tool("t", json!({})).await.unwrap_err();
        let most = if with_questions { 16 } else { 8 };
        assert!(
            matches!(error, Error::Client(ClientError::TooManyRounds(it)) if it == most),
            "{error}"
        );
        assert_eq!(seen.lock().unwrap().len(), most as usize + 2);
    }
}

// M-58, M-60, T2C-03, T2C-04, RPC-11
#[tokio::test]
async fn result_of_wrong_type_is_protocol_violation() {
    let question = json!({"k": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}}});
    for (method, result) in [
        ("tools/call", json!({"resultType": "surprise"})),
        ("tools/call", json!({"resultType": "input_required"})),
        ("tools/call", json!({"resultType": "input_required", "inputRequests": question})),
        ("tools/call", json!({"resultType": "task", "taskId": "t", "status": "dreaming"})),
        ("tools/call", json!([1])),
        ("tools/list", json!({"resultType": "input_required", "requestState": "s"})),
        ("prompts/get", json!({"resultType": "task", "taskId": "t", "status": "working"})),
        ("tools/list", json!({"resultType": "complete"})),
    ] {
        let answer = result.clone();
        let (target, seen) = pipe(move |request| match request["method"].as_str() {
            Some("server/discover") => vec![line(request, &discovered())],
            _ => vec![line(request, &answer)],
        });
        let client = builder().connect(target).await.unwrap();
        let error = match method {
            "tools/call" => client.call_tool("t", json!({})).await.unwrap_err(),
            "prompts/get" => client.get_prompt("p").await.unwrap_err(),
            _ => client.list_tools().collect().await.unwrap_err(),
        };
        assert!(matches!(error, Error::ProtocolViolation(_)), "{method} {result}: {error}");
        assert_eq!(seen.lock().unwrap().len(), 2, "no request is retried");
    }
}

// CANC-04, RPC-07, STDIO-18, PROG-08
#[tokio::test]
async fn unsolicited_messages_are_ignored() {
    let (target, _) = pipe(|request| {
        match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => vec![
            "no json".to_owned(),
            r#"{"jsonrpc":"1.0","id":2,"result":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":"2","result":{"content":[]}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":999,"result":{"content":[]}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":1}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#.to_owned(),
            line(request, &said("mine")),
            line(request, &said("twice")),
        ],
    }
    });
    let client = builder().connect(target).await.unwrap();
    for _ in 0..2 {
        let result = client
            .call_tool("t", json!({}))
            .on_progress(|_| panic!("progress of another request"))
            .await;
        assert_eq!(result_text(&result.unwrap()), "mine");
    }
}

#[tokio::test]
async fn message_over_limit_fails_as_too_large() {
    let peer = HttpScript::new(|seen, _| async move {
        match seen.method() {
            "server/discover" => ok(&seen, &discovered()),
            _ => ok(&seen, &said(&"x".repeat(100_000))),
        }
    })
    .await;
    let client = builder()
        .limits(|limits| limits.max_message_bytes = 50_000)
        .connect(peer.url.as_str())
        .await
        .unwrap();
    let error = client.call_tool("t", json!({})).await.unwrap_err();
    match &error {
        Error::Transport(error) => {
            assert_eq!(*error.kind(), TransportErrorKind::TooLarge(50_000));
        }
        other => panic!("{other}"),
    }
}

// JSCH-06
#[tokio::test]
async fn oversized_output_schema_is_protocol_violation() {
    let mut schema = json!({"type": "object"});
    for _ in 0..100 {
        schema = json!({"allOf": [schema.clone()], "properties": {"x": schema}});
        if schema.to_string().len() > 100_000 {
            break;
        }
    }
    let (target, _) = pipe(move |request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        Some("tools/list") => {
            let tool =
                json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema});
            vec![line(request, &json!({"tools": [tool]}))]
        }
        _ => vec![line(request, &json!({"content": [], "structuredContent": {}}))],
    });
    let client =
        builder().limits(|limits| limits.max_schema_bytes = 50_000).connect(target).await.unwrap();
    let error = client.call_tool("t", json!({})).validate_output().await.unwrap_err();
    assert!(matches!(error, Error::ProtocolViolation(_)), "{error}");
}

// CANC-06, CANC-09, STDIO-09
#[tokio::test]
async fn timed_out_call_sends_cancellation() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => Vec::new(),
    });
    let client = builder().connect(target).await.unwrap();
    let late = client.call_tool("t", json!({})).timeout(Duration::from_millis(20)).await;
    let late = late.unwrap_err();
    assert!(matches!(late, Error::Client(ClientError::TimedOut(_))), "{late}");
    assert!(late.may_have_executed());
    // The client writes messages in order, so the cancellation precedes this ping.
    client.ping().await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen[2],
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the client no longer waits for the result"}}"#
    );
}

#[tokio::test]
async fn input_response_violating_form_is_not_sent() {
    let (target, seen) = pipe(|request| match request["method"].as_str() {
        Some("server/discover") => vec![line(request, &discovered())],
        _ => {
            let form = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
            let question = json!({"method": "elicitation/create", "params": {"message": "?", "requestedSchema": form}});
            vec![line(
                request,
                &json!({"resultType": "input_required", "inputRequests": {"k": question}}),
            )]
        }
    });
    let answers =
        InputCallbacks::new().form(|_| async { InputResponse::accept(json!({"n": "one"})) });
    let client = builder().input_handler(answers).connect(target).await.unwrap();
    let error = client.call_tool("t", json!({})).await.unwrap_err();
    assert!(matches!(error, Error::Client(ClientError::InvalidInputResponse(_))), "{error}");
    assert_eq!(seen.lock().unwrap().len(), 2);
}
