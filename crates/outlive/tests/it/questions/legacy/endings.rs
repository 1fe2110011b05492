//! Questions that are not answered: in time, any more, or because everybody has left.

use std::time::Duration;

use outlive::server::{
    Durable, Prompt, Resource, Result, Server, State, Tool, durable::DurableError,
};
use serde_json::{Value, json};
use tokio::time::{advance, sleep};

use crate::{
    questions::dialogue::{Approval, Talk, accept, builder, failure_of, refusal_of, text_of},
    support::{gate::Gate, pipe::Pipe},
};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits for as long as the server lets it, or the tool wants.
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
        Some(DurableError::TimedOut { key }) => Ok(format!("nobody answered {key}: {error}")),
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

/// Asks, and loses patience, and does something else.
async fn impatient(cx: Durable) -> Result<String> {
    tokio::select! {
        approval = cx.elicit::<Approval>("sure", "Really?") => Ok(approval?.yes.to_string()),
        () = sleep(Duration::from_secs(5)) => {
            sleep(Duration::from_secs(1)).await;
            Ok("did without".into())
        }
    }
}

/// Asks, loses patience, and has nothing else to do.
async fn hasty(cx: Durable) -> Result<String> {
    tokio::select! {
        approval = cx.elicit::<Approval>("sure", "Really?") => Ok(approval?.yes.to_string()),
        () = sleep(Duration::from_secs(5)) => Ok("did without".into()),
    }
}

/// Fails while a question is open.
async fn failing(cx: Durable) -> Result<String> {
    let fails = async {
        sleep(Duration::from_secs(5)).await;
        Err::<(), _>(outlive::server::Error::new("the disk is full"))
    };
    tokio::try_join!(cx.elicit::<Approval>("sure", "Really?"), fails)?;
    Ok("never".into())
}

/// Refuses the call while a question is open.
async fn refusing(cx: Durable) -> Result<String> {
    let refuses = async {
        sleep(Duration::from_secs(5)).await;
        Err::<(), _>(outlive::server::Error::invalid_params("not like this"))
    };
    tokio::try_join!(cx.elicit::<Approval>("sure", "Really?"), refuses)?;
    Ok("never".into())
}

/// Falls over while a question is open.
async fn panicking(cx: Durable) -> Result<String> {
    let falls = async {
        sleep(Duration::from_secs(5)).await;
        panic!("the handler panics, as the test wants it");
    };
    let (approval, ()) = tokio::join!(cx.elicit::<Approval>("sure", "Really?"), falls);
    Ok(approval?.yes.to_string())
}

/// Takes the first of two answers.
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

/// Asks again in other words when nobody answers the first.
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

/// Asks when it is let to, and stands at the gate with the answer.
async fn gated(cx: Durable, gate: State<Gate>) -> Result<String> {
    gate.pass().await;
    let approval = cx.elicit::<Approval>("sure", "Really?").await;
    match approval {
        Ok(approval) => Ok(approval.yes.to_string()),
        Err(error) => Ok(format!("no answer: {error}")),
    }
}

/// Stands at a gate while its question is open.
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

/// Calls a tool and reads its question.
async fn ask(pipe: &mut Pipe, tool: &str) -> (u64, Value) {
    let id = pipe.send("tools/call", json!({"name": tool})).await;
    let asked = pipe.read().await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    (id, asked)
}

/// The next message takes this question back.
#[track_caller]
fn takes_back(message: &Value, asked: &Value) {
    assert_eq!(message["method"], "notifications/cancelled", "{message}");
    assert_eq!(message["params"]["requestId"], asked["id"], "{message}");
    assert!(message["params"]["reason"].is_string(), "{message}");
}

// ELIC-21, CANC-02, CANC-06
#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_in_time_is_taken_back() {
    for (tool, seconds) in [("patient", 60), ("shorter", 20), ("longer", 120)] {
        let (Talk { mut pipe, .. }, _) = open().await;
        let (id, asked) = ask(&mut pipe, tool).await;
        advance(Duration::from_secs(seconds - 11)).await;
        pipe.quiet().await;
        advance(Duration::from_secs(2)).await;
        takes_back(&pipe.read().await, &asked);
        let answer = pipe.answer(id).await;
        assert_eq!(text_of(&answer), "nobody answered sure: input request `sure` timed out");
        // What comes now comes too late, and changes nothing.
        pipe.reply(&asked, accept(json!({"yes": true}))).await;
        pipe.quiet().await;
    }
}

// CANC-06: an answer in time is none too late
#[tokio::test(start_paused = true)]
async fn a_question_is_open_until_its_time_is_over() {
    for (tool, seconds) in [("patient", 60), ("shorter", 20), ("longer", 120)] {
        let (Talk { mut pipe, .. }, _) = open().await;
        let (id, asked) = ask(&mut pipe, tool).await;
        advance(Duration::from_secs(seconds - 1)).await;
        pipe.reply(&asked, accept(json!({"yes": true}))).await;
        assert_eq!(text_of(&pipe.answer(id).await), "true", "{tool}");
    }
}

// CANC-06, CANC-10: how long that is can be set, and is long by default
#[tokio::test(start_paused = true)]
async fn a_user_has_a_quarter_of_an_hour_by_default() {
    let server = builder([Tool::new("patient", patient)]).build().unwrap();
    let mut pipe = Talk::open(&server, "2025-11-25").await.pipe;
    let (id, asked) = ask(&mut pipe, "patient").await;
    advance(Duration::from_secs(15 * 60 - 11)).await;
    pipe.quiet().await;
    advance(Duration::from_secs(2)).await;
    takes_back(&pipe.read().await, &asked);
    assert!(text_of(&pipe.answer(id).await).starts_with("nobody answered"));
}

// CANC-02
#[tokio::test(start_paused = true)]
async fn a_question_that_lost_a_race_is_taken_back() {
    let (Talk { mut pipe, .. }, _) = open().await;
    let (id, asked) = ask(&mut pipe, "impatient").await;
    takes_back(&pipe.read().await, &asked);
    // An answer may cross with that.
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(id).await), "did without");
    let (id, asked) = ask(&mut pipe, "impatient").await;
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(id).await), "true");
    pipe.quiet().await;
}

// CANC-02: nobody must be left with a question that no one waits for
#[tokio::test(start_paused = true)]
async fn a_question_is_taken_back_when_the_handler_ends_without_its_answer() {
    for (tool, said) in [("hasty", "did without"), ("failing", "the disk is full")] {
        let (Talk { mut pipe, .. }, _) = open().await;
        let (id, asked) = ask(&mut pipe, tool).await;
        let messages = pipe.read_to(id).await;
        let [taken_back, answer] = &messages[..] else {
            panic!("{tool}: the question is still open for the client: {messages:?}");
        };
        takes_back(taken_back, &asked);
        assert_eq!(text_of(answer), said);
    }
}

// CANC-02: also when the call is refused
#[tokio::test(start_paused = true)]
async fn a_question_is_taken_back_when_the_call_is_refused_without_its_answer() {
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
            panic!("{method}: the question is still open for the client: {messages:?}");
        };
        takes_back(taken_back, &asked);
        assert_eq!(refusal_of(answer).0, code, "{method}");
    }
}

// CANC-02
#[tokio::test(start_paused = true)]
async fn the_first_of_two_answers_takes_the_other_question_back() {
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

// CANC-02: a question that is asked anew is another question, also under the same key
#[tokio::test(start_paused = true)]
async fn a_question_that_is_asked_in_other_words_is_shown_in_those_words() {
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
async fn a_client_that_cancels_the_call_is_not_waited_for() {
    let (Talk { mut pipe, .. }, gate) = open().await;
    let (id, asked) = ask(&mut pipe, "beside").await;
    gate.arrived().await;
    pipe.cancel(id).await;
    gate.abandoned().await;
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    // No answer to a call that was cancelled, and nothing is wrong with the next.
    pipe.quiet().await;
    let (id, asked) = ask(&mut pipe, "patient").await;
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(id).await), "true");
}

// STDIO-12: the client has closed its end; what still runs is answered and then it is over
#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_it_is_asked_gets_its_answer_at_once() {
    let (Talk { mut pipe, .. }, _) = open().await;
    let (id, _) = ask(&mut pipe, "patient").await;
    let begun = tokio::time::Instant::now();
    pipe.finish().await;
    let messages = pipe.read_to_end().await;
    let answer = messages.last().expect("an answer");
    assert_eq!(answer["id"], id);
    assert!(
        failure_of(answer).starts_with("the client rejected the input request `sure`"),
        "{answer}"
    );
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

// STDIO-12
#[tokio::test(start_paused = true)]
async fn a_client_that_has_left_is_not_asked_any_more() {
    let (Talk { mut pipe, .. }, gate) = open().await;
    let id = pipe.send("tools/call", json!({"name": "gated"})).await;
    gate.arrived().await;
    pipe.finish().await;
    // Lets the server see the end first.
    sleep(Duration::from_millis(10)).await;
    gate.open(1);
    let begun = tokio::time::Instant::now();
    let messages = pipe.read_to_end().await;
    let answer = messages.last().expect("an answer");
    assert_eq!(answer["id"], id);
    assert!(text_of(answer).starts_with("no answer: "), "{answer}");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

// VER-30: the answers go to the newer session, so the older one gets none
#[tokio::test(start_paused = true)]
async fn a_second_handshake_leaves_no_call_waiting_for_answers() {
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
async fn a_handler_that_panics_while_it_asks_ends_its_own_call_only() {
    let (Talk { mut pipe, .. }, _) = open().await;
    let (first, _) = ask(&mut pipe, "panicking").await;
    let (second, asked) = ask(&mut pipe, "patient").await;
    let messages = pipe.read_to(first).await;
    assert_eq!(refusal_of(messages.last().unwrap()), (-32603, "internal error"));
    pipe.reply(&asked, accept(json!({"yes": true}))).await;
    assert_eq!(text_of(&pipe.answer(second).await), "true");
}
