//! Matching of input responses to input requests by ID, and error responses of clients.

use std::collections::HashSet;

use outlive::server::{Args, Durable, Result, Server, Tool, durable::DurableError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    input::dialogue::{Approval, Talk, accept, failure_of, server, text_of},
    support::pipe::LEGACY,
};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Elicits twice, with the given name in the message.
async fn twice(cx: Durable, Args(Name { name }): Args<Name>) -> Result<String> {
    let first: Approval = cx.elicit("first", format!("{name} 1")).await?;
    let second: Approval = cx.elicit("second", format!("{name} 2")).await?;
    Ok(format!("{name}: {} {}", first.yes, second.yes))
}

/// Returns the error that the client sent instead of an input response.
async fn refused(cx: Durable) -> Result<String> {
    let error = cx.elicit::<Approval>("sure", "Really?").await.unwrap_err();
    match error.durable_error() {
        Some(DurableError::ClientError { key, code, message }) => {
            Ok(format!("{key}: {code} {message}"))
        }
        _ => Err(error),
    }
}

async fn brief(cx: Durable) -> Result<String> {
    let approval: Approval = cx.elicit("sure", "Really?").await?;
    Ok(approval.yes.to_string())
}

/// Returns the number of roots, or the error.
async fn roots(cx: Durable) -> Result<String> {
    match cx.roots("roots").await {
        Ok(roots) => Ok(roots.len().to_string()),
        Err(error) => Ok(error.to_string()),
    }
}

fn asking() -> Server {
    server([
        Tool::new("twice", twice),
        Tool::new("refused", refused),
        Tool::new("brief", brief),
        Tool::new("roots", roots),
    ])
}

fn call(id: u64, name: &str) -> Value {
    let params = json!({"name": "twice", "arguments": {"name": name}});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn yes() -> Value {
    accept(json!({"yes": true}))
}

fn no() -> Value {
    accept(json!({"yes": false}))
}

// MT-10, ELIC-03, ELIC-23, RPC-04
#[tokio::test(start_paused = true)]
async fn input_request_ids_are_unique_and_independent_of_client_ids() {
    let mut talk = Talk::open(&asking(), "2025-11-25").await;
    let mut seen = HashSet::new();
    let mut read = async |talk: &mut Talk| {
        let asked = talk.pipe.read().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        assert!(seen.insert(asked["id"].to_string()), "the ID of {asked} was used before");
        asked
    };
    // Client and server use the same numbers as IDs, for different requests.
    for (id, name) in [(1, "anna"), (2, "bert"), (3, "carl")] {
        talk.pipe.send_json(&call(id, name)).await;
    }
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(read(&mut talk).await);
    }
    let of = |asked: &[Value], message: &str| {
        let found = asked.iter().find(|asked| asked["params"]["message"] == message);
        found.unwrap_or_else(|| panic!("no input request {message}: {asked:?}")).clone()
    };
    // The client responds in another order, and differently to each.
    talk.pipe.reply(&of(&asked, "carl 1"), no()).await;
    let carl = read(&mut talk).await;
    talk.pipe.reply(&of(&asked, "anna 1"), yes()).await;
    let anna = read(&mut talk).await;
    talk.pipe.reply(&of(&asked, "bert 1"), no()).await;
    let bert = read(&mut talk).await;
    for (id, asked, answer, expected) in [
        (2, bert, yes(), "bert: false true"),
        (3, carl, no(), "carl: false false"),
        (1, anna, yes(), "anna: true true"),
    ] {
        talk.pipe.reply(&asked, answer).await;
        assert_eq!(text_of(&talk.pipe.answer(id).await), expected);
    }
}

// CANC-05: a client cancels its own requests, even if the server uses the same ID
#[tokio::test(start_paused = true)]
async fn client_cancellation_does_not_affect_server_request_ids() {
    let mut talk = Talk::open(&asking(), "2025-11-25").await;
    talk.pipe.send_json(&call(7, "anna")).await;
    let asked = talk.pipe.read().await;
    talk.pipe.cancel(asked["id"].clone()).await;
    talk.pipe.reply(&asked, yes()).await;
    let asked = talk.pipe.read().await;
    assert_eq!(asked["params"]["message"], "anna 2");
    talk.pipe.reply(&asked, yes()).await;
    assert_eq!(text_of(&talk.pipe.answer(7).await), "anna: true true");
}

// VER-35: unsolicited responses are ignored
#[tokio::test(start_paused = true)]
async fn unsolicited_input_responses_are_ignored() {
    let mut talk = Talk::open(&asking(), "2025-11-25").await;
    talk.pipe.send_json(&call(5, "anna")).await;
    let asked = talk.pipe.read().await;
    let id = asked["id"].as_u64().expect("a number");
    let strange = [
        json!(id + 1),
        json!(999_999),
        json!(-1),
        json!(0),
        json!(5),
        json!(id.to_string()),
        json!("nobody"),
        json!(u64::MAX),
    ];
    for id in strange {
        talk.pipe.send_json(&json!({"jsonrpc": "2.0", "id": id, "result": no()})).await;
        let error = json!({"code": -1, "message": "no"});
        talk.pipe.send_json(&json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    }
    talk.pipe.quiet().await;
    talk.pipe.reply(&asked, yes()).await;
    let second = talk.pipe.read().await;
    assert_eq!(second["params"]["message"], "anna 2", "the second input request follows the first");
    // A second response does not replace the first.
    talk.pipe.reply(&asked, no()).await;
    talk.pipe.reply(&second, no()).await;
    assert_eq!(text_of(&talk.pipe.answer(5).await), "anna: true false");
    // A response to an ended call is ignored too.
    talk.pipe.reply(&second, yes()).await;
    talk.pipe.quiet().await;
}

// ELIC-21, ELIC-02, SAMP-11, ROOT-04
#[tokio::test(start_paused = true)]
async fn client_error_reaches_handler_with_code_and_message() {
    let mut talk = Talk::open(&asking(), "2025-11-25").await;
    for (error, expected) in [
        (json!({"code": -1, "message": "User rejected"}), "sure: -1 User rejected"),
        (json!({"code": -32601, "message": "Method not found"}), "sure: -32601 Method not found"),
        (
            json!({"code": -32602, "message": "no such mode", "data": {"x": [1]}}),
            "sure: -32602 no such mode",
        ),
        (json!({"code": -32603, "message": ""}), "sure: -32603 "),
        (json!({"code": 17, "message": "ü\n"}), "sure: 17 ü\n"),
    ] {
        let id = talk.pipe.send("tools/call", json!({"name": "refused"})).await;
        let asked = talk.pipe.read().await;
        talk.pipe.send_json(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
        assert_eq!(text_of(&talk.pipe.answer(id).await), expected);
    }
}

// ELIC-21: also a malformed error
#[tokio::test(start_paused = true)]
async fn malformed_client_error_fails_input_request() {
    let mut talk = Talk::open(&asking(), "2025-11-25").await;
    for error in [json!("no"), json!({}), json!([1]), json!({"code": "x", "message": 1})] {
        let id = talk.pipe.send("tools/call", json!({"name": "refused"})).await;
        let asked = talk.pipe.read().await;
        talk.pipe.send_json(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
        let answer = talk.pipe.answer(id).await;
        assert!(text_of(&answer).starts_with("sure: -32603 "), "{error}: {answer}");
    }
}

// ELIC-21
#[tokio::test(start_paused = true)]
async fn client_error_fails_handler_using_question_mark() {
    let mut talk = Talk::open(&asking(), "2025-06-18").await;
    let id = talk.pipe.send("tools/call", json!({"name": "brief"})).await;
    let asked = talk.pipe.read().await;
    let error = json!({"code": -1, "message": "User rejected"});
    talk.pipe.send_json(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    let answer = talk.pipe.answer(id).await;
    assert_eq!(
        failure_of(&answer),
        "the client rejected the input request `sure`: User rejected (-1)"
    );
}

// ROOT-04, ROOT-06: a client may declare roots and still reject the request
#[tokio::test(start_paused = true)]
async fn roots_request_rejected_by_client_fails_with_its_error() {
    for version in LEGACY {
        let mut talk = Talk::open(&asking(), version).await;
        let id = talk.pipe.send("tools/call", json!({"name": "roots"})).await;
        let asked = talk.pipe.read().await;
        assert_eq!(asked["method"], "roots/list");
        let error = json!({"code": -32601, "message": "Roots not supported"});
        talk.pipe.send_json(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
        let expected =
            "the client rejected the input request `roots`: Roots not supported (-32601)";
        assert_eq!(text_of(&talk.pipe.answer(id).await), expected, "{version}");
    }
}

// RPC-27, STDIO-16: the same holds in a batch
#[tokio::test(start_paused = true)]
async fn calls_in_pipe_batch_can_request_input() {
    let mut talk = Talk::open(&asking(), "2025-03-26").await;
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "roots"}});
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    talk.pipe.send_json(&json!([call(1), ping, call(2)])).await;
    let (mut asked, mut answered) = (Vec::new(), Vec::new());
    while asked.len() < 2 || answered.is_empty() {
        match talk.pipe.read().await {
            Value::Array(answers) => answered.extend(answers),
            message if message.get("method").is_some() => asked.push(message),
            message => answered.push(message),
        }
    }
    assert_eq!(answered, [json!({"jsonrpc": "2.0", "id": 9, "result": {}})]);
    assert_ne!(asked[0]["id"], asked[1]["id"]);
    // Responses may be a batch too.
    let root = |count: usize| json!({"roots": vec![json!({"uri": "file:///"}); count]});
    let answer =
        |asked: &Value, count| json!({"jsonrpc": "2.0", "id": asked["id"], "result": root(count)});
    let answers = json!([answer(&asked[1], 2), answer(&asked[0], 1)]);
    talk.pipe.send_json(&answers).await;
    let mut texts = Vec::new();
    for _ in 0..2 {
        let message = talk.pipe.read().await;
        texts.push((message["id"].as_u64(), text_of(&message).to_owned()));
    }
    texts.sort();
    assert_eq!(texts, [(Some(1), "1".to_owned()), (Some(2), "2".to_owned())]);
}
