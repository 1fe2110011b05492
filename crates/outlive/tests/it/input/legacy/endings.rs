//! Input requests without a response: timeouts, cancelled calls and closed connections.

use std::time::Duration;

use outlive::server::{
    Durable, Prompt, Resource, Result, Server, State, Tool, durable::DurableError,
};
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use crate::{
    input::dialogue::{Approval, Talk, accept, builder, failure_of, refusal_of, text_of},
    support::{gate::Gate, pipe::Pipe},
};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Elicits with the default timeout or with a timeout in seconds.
async fn wait(cx: &Durable, within: Option<u64>) -> Result<String> {
    let mut question = cx.elicit::<Approval>("sure", "Really?");
    if let Some(seconds) = within {
        question = question.timeout(Duration::from_secs(seconds));
    }
    let error = match question.await {
        Ok(approval) => return Ok(approval.yes.to_string()),
        Err(error) => error,
    };
    match error.durable_error() {
        Some(DurableError::TimedOut { key }) => Ok(format!("no response to {key}: {error}")),
        _ => Err(error),
    }
}

async fn patient(cx: Durable) -> Result<String> {
    wait(&cx, None).await
}

async fn shorter(cx: Durable) -> Result<String> {
    wait(&cx, Some(20)).await
}

async fn longer(cx: Durable) -> Result<String> {
    wait(&cx, Some(120)).await
}

/// Elicits, stops waiting, and runs a step.
async fn impatient(cx: Durable) -> Result<String> {
    tokio::select! {
        approval = cx.elicit::<Approval>("sure", "Really?") => Ok(approval?.yes.to_string()),
        () = sleep(Duration::from_secs(5)) => {
            sleep(Duration::from_secs(1)).await;
            Ok("did without".into())
        }
    }
}

/// Elicits, stops waiting, and returns.
async fn hasty(cx: Durable) -> Result<String> {
    tokio::select! {
        approval = cx.elicit::<Approval>("sure", "Really?") => Ok(approval?.yes.to_string()),
        () = sleep(Duration::from_secs(5)) => Ok("did without".into()),
    }
}

/// Fails while an input request is open.
async fn failing(cx: Durable) -> Result<String> {
    let fails = async {
        sleep(Duration::from_secs(5)).await;
        Err::<(), _>(outlive::server::Error::new("the disk is full"))
    };
    tokio::try_join!(cx.elicit::<Approval>("sure", "Really?"), fails)?;
    Ok("never".into())
}

/// Returns a protocol error while an input request is open.
async fn refusing(cx: Durable) -> Result<String> {
    let refuses = async {
        sleep(Duration::from_secs(5)).await;
        Err::<(), _>(outlive::server::Error::invalid_params("not like this"))
    };
    tokio::try_join!(cx.elicit::<Approval>("sure", "Really?"), refuses)?;
    Ok("never".into())
}

/// Panics while an input request is open.
async fn panicking(cx: Durable) -> Result<String> {
    let falls = async {
        sleep(Duration::from_secs(5)).await;
        panic!("intended panic of the handler");
    };
    let (approval, ()) = tokio::join!(cx.elicit::<Approval>("sure", "Really?"), falls);
    Ok(approval?.yes.to_string())
}

/// Uses the first of two input responses.
async fn either(cx: Durable) -> Result<String> {
    let (left, right) =
        (cx.elicit::<Approval>("left", "Left?"), cx.elicit::<Approval>("right", "Right?"));
    let said = tokio::select! {
        biased;
        left = left => format!("left {}", left?.yes),
        right = right => format!("right {}", right?.yes),
    };
    sleep(Duration::from_secs(1)).await;
    Ok(said)
}

/// Elicits again with another text if there is no response.
async fn insisting(cx: Durable) -> Result<String> {
    for words in ["Really?", "Are you still there?"] {
        tokio::select! {
            approval = cx.elicit::<Approval>("sure", words) => {
                return Ok(format!("{words} {}", approval?.yes));
            }
            () = sleep(Duration::from_secs(5)) => {}
        }
    }
    Ok("never mind".into())
}

/// Elicits when the gate opens, then waits at the gate.
async fn gated(cx: Durable, gate: State<Gate>) -> Result<String> {
    gate.pass().await;
    let approval = cx.elicit::<Approval>("sure", "Really?").await;
    match approval {
        Ok(approval) => Ok(approval.yes.to_string()),
        Err(error) => Ok(format!("no answer: {error}")),
    }
}

/// Waits at a gate while an input request is open.
async fn beside(cx: Durable, gate: State<Gate>) -> Result<String> {
    let (approval, ()) = tokio::join!(cx.elicit::<Approval>("sure", "Really?"), gate.pass());
    Ok(approval?.yes.to_string())
}

fn asking(gate: &Gate) -> Server {
    let tools = [
        Tool::new("patient", patient),
        Tool::new("shorter", shorter),
        Tool::new("longer", longer),
        Tool::new("impatient", impatient),
        Tool::new("hasty", hasty),
        Tool::new("failing", failing),
        Tool::new("refusing", refusing),
        Tool::new("panicking", panicking),
        Tool::new("either", either),
        Tool::new("insisting", insisting),
        Tool::new("gated", gated),
        Tool::new("beside", beside),
    ];
    let builder = builder(tools)
        .state(gate.clone())
        .prompt(Prompt::new("failing", failing))
        .resource(Resource::new("ask://failing", "failing", failing));
    builder.limits(|limits| limits.input_timeout = TIMEOUT).build().unwrap()
}

async fn open() -> (Talk, Gate) {
    let gate = Gate::default();
    (Talk::open(&asking(&gate), "2025-11-25").await, gate)
}

/// Calls a tool and reads its input request.
async fn ask(pipe: &mut Pipe, tool: &str) -> (u64, Value) {
    let id = pipe.send("tools/call", json!({"name": tool})).await;
    let asked = pipe.read().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    (id, asked)
}

/// Asserts that this message cancels the input request.
#[track_caller]
fn takes_back(message: &Value, asked: &Value) {
    assert_eq!(message["method"], "notifications/cancelled", "{message}");
    assert_eq!(message["params"]["requestId"], asked["id"], "{message}");
    assert!(message["params"]["reason"].is_string(), "{message}");
}

// ELIC-21, CANC-02, CANC-06
#[tokio::test(start_paused = true)]
async fn input_request_without_response_is_cancelled_at_timeout() {
    for (tool, seconds) in [("patient", 60), ("shorter", 20), ("longer", 120)] {
        let (Talk { mut pipe, .. }, _) = open().await;
        let (id, asked) = ask(&mut pipe, tool).await;
        advance(Duration::from_secs(seconds - 11)).await;
        pipe.quiet().await;
        advance(Duration::from_secs(2)).await;
        takes_back(&pipe.read().await, &asked);
        let answer = pipe.answer(id).await;
        assert_eq!(text_of(&answer), "no response to sure: input request `sure` timed out");
        // A late response has no effect.
        pipe.reply(&asked, accept(json!({"yes": true}))).await;
        pipe.quiet().await;
    }
}

// CANC-06: a response before the timeout counts
#[tokio::test(start_paused = true)]
async fn input_response_just_before_timeout_is_accepted() {
    for (tool, seconds) in [("patient", 60), ("shorter", 20), ("longer", 120)] {
        let (Talk { mut pipe, .. }, _) = open().await;
        let (id, asked) = ask(&mut pipe, tool).await;
        advance(Duration::from_secs(seconds - 1)).await;
        pipe.reply(&asked, accept(json!({"yes": true}))).await;
        assert_eq!(text_of(&pipe.answer(id).await), "true", "{tool}");
    }
}

// CANC-06, CANC-10: the timeout is configurable
#[tokio::test(start_paused = true)]
async fn input_timeout_defaults_to_15_minutes() {
    let server = builder([Tool::new("patient", patient)]).build().unwrap();
    let mut pipe = Talk::open(&server, "2025-11-25").await.pipe;
    let (id, asked) = ask(&mut pipe, "patient").await;
    advance(Duration::from_secs(15 * 60 - 11)).await;
    pipe.quiet().await;
    advance(Duration::from_secs(2)).await;
    takes_back(&pipe.read().await, &asked);
    assert!(text_of(&pipe.answer(id).await).starts_with("no response to"));
}

// CANC-02
#[tokio::test(start_paused = true)]
async fn dropped_input_request_is_cancelled() {
    let (Talk { mut pipe, .. }, _) = open().await;
    let (id, asked) = ask(&mut pipe, "impatient").await;
    takes_back(&pipe.read().await, &asked);
    // A response may cross the cancellation.
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(id).await), "did without");
    let (id, asked) = ask(&mut pipe, "impatient").await;
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(id).await), "true");
    pipe.quiet().await;
}

// CANC-02: the client must not keep an input request that the server no longer waits for
#[tokio::test(start_paused = true)]
async fn input_request_open_at_end_of_handler_is_cancelled() {
    for (tool, said) in [("hasty", "did without"), ("failing", "the disk is full")] {
        let (Talk { mut pipe, .. }, _) = open().await;
        let (id, asked) = ask(&mut pipe, tool).await;
        let messages = pipe.read_to(id).await;
        let [taken_back, answer] = &messages[..] else {
            panic!("{tool}: the input request is still open for the client: {messages:?}");
        };
        takes_back(taken_back, &asked);
        assert_eq!(text_of(answer), said);
    }
}

// CANC-02: also if the call ends with a protocol error
#[tokio::test(start_paused = true)]
async fn input_request_open_at_protocol_error_is_cancelled() {
    for (method, params, code) in [
        ("tools/call", json!({"name": "refusing"}), -32602),
        ("prompts/get", json!({"name": "failing"}), -32603),
        ("resources/read", json!({"uri": "ask://failing"}), -32603),
    ] {
        let (Talk { mut pipe, .. }, _) = open().await;
        let id = pipe.send(method, params).await;
        let asked = pipe.read().await;
        let messages = pipe.read_to(id).await;
        let [taken_back, answer] = &messages[..] else {
            panic!("{method}: the input request is still open for the client: {messages:?}");
        };
        takes_back(taken_back, &asked);
        assert_eq!(refusal_of(answer).0, code, "{method}");
    }
}

// CANC-02
#[tokio::test(start_paused = true)]
async fn input_request_losing_select_is_cancelled() {
    let (Talk { mut pipe, .. }, _) = open().await;
    let (id, left) = ask(&mut pipe, "either").await;
    let right = pipe.read().await;
    assert_eq!(
        (&left["params"]["message"], &right["params"]["message"]),
        (&json!("Left?"), &json!("Right?"))
    );
    pipe.reply(&right, accept(json!({"yes": true}))).await;
    takes_back(&pipe.read().await, &left);
    assert_eq!(text_of(&pipe.answer(id).await), "right true");
}

// CANC-02: a new input request under the same key is a separate request
#[tokio::test(start_paused = true)]
async fn repeated_input_request_with_new_text_is_sent_with_new_text() {
    let (Talk { mut pipe, .. }, _) = open().await;
    let (id, first) = ask(&mut pipe, "insisting").await;
    assert_eq!(first["params"]["message"], "Really?");
    let mut messages = [pipe.read().await, pipe.read().await];
    messages.sort_by_key(|message| message["method"].as_str().map(str::to_owned));
    takes_back(&messages[1], &first);
    assert_eq!(messages[0]["params"]["message"], "Are you still there?");
    pipe.reply(&messages[0], accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(id).await), "Are you still there? true");
}

// CANC-03, CANC-05
#[tokio::test(start_paused = true)]
async fn cancelled_pipe_call_drops_its_input_request() {
    let (Talk { mut pipe, .. }, gate) = open().await;
    let (id, asked) = ask(&mut pipe, "beside").await;
    gate.arrived().await;
    pipe.cancel(id).await;
    gate.abandoned().await;
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    // The cancelled call gets no response, and the next call works.
    pipe.quiet().await;
    let (id, asked) = ask(&mut pipe, "patient").await;
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(id).await), "true");
}

// STDIO-12: after end of input, running calls get their response and the server ends
#[tokio::test(start_paused = true)]
async fn end_of_input_fails_open_input_request_immediately() {
    let (Talk { mut pipe, .. }, _) = open().await;
    let (id, _) = ask(&mut pipe, "patient").await;
    let begun = tokio::time::Instant::now();
    pipe.finish().await;
    let messages = pipe.read_to_end().await;
    let answer = messages.last().expect("a response");
    assert_eq!(answer["id"], id);
    assert!(
        failure_of(answer).starts_with("the client rejected the input request `sure`"),
        "{answer}"
    );
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

// STDIO-12
#[tokio::test(start_paused = true)]
async fn input_request_after_end_of_input_fails() {
    let (Talk { mut pipe, .. }, gate) = open().await;
    let id = pipe.send("tools/call", json!({"name": "gated"})).await;
    gate.arrived().await;
    pipe.finish().await;
    // Lets the server notice the end of input first.
    sleep(Duration::from_millis(10)).await;
    gate.open(1);
    let begun = tokio::time::Instant::now();
    let messages = pipe.read_to_end().await;
    let answer = messages.last().expect("a response");
    assert_eq!(answer["id"], id);
    assert!(text_of(answer).starts_with("no answer: "), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

// VER-30: the new session receives all responses, so calls of the old session cannot wait
#[tokio::test(start_paused = true)]
async fn second_handshake_fails_open_input_requests() {
    let (mut talk, _) = open().await;
    let (id, _) = ask(&mut talk.pipe, "patient").await;
    let begun = tokio::time::Instant::now();
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let again = talk.pipe.send_as_is("initialize", params).await;
    let mut messages = [talk.pipe.read().await, talk.pipe.read().await];
    messages.sort_by_key(|message| message["id"] == again);
    assert_eq!(messages[0]["id"], id, "{messages:?}");
    assert!(failure_of(&messages[0]).starts_with("the client rejected the input request `sure`"));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn panic_with_open_input_request_ends_only_its_call() {
    let (Talk { mut pipe, .. }, _) = open().await;
    let (first, _) = ask(&mut pipe, "panicking").await;
    let (second, asked) = ask(&mut pipe, "patient").await;
    let messages = pipe.read_to(first).await;
    assert_eq!(refusal_of(messages.last().unwrap()), (-32603, "internal error"));
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(second).await), "true");
}
