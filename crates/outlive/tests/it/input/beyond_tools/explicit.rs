//! Explicit rounds: handlers that return their input requests and a state.

use outlive::server::{
    Args, Durable, Error, Prompt, Resource, Result, SealKeys, Server, State, Tool,
    durable::{DurableError, ElicitOutcome, InputRequestSet, Round, RoundOutcome},
};
use outlive::wire::{CreateMessageRequestParams, Role, SamplingMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{
        Approval, Notes, Talk, WIRES, accept, builder, decline, failure_of, keys, logged,
        refusal_of, state_of, text_of,
    },
    support::pipe::MODERN,
};

#[derive(Serialize, Deserialize)]
struct Booking {
    flight: String,
    asked: u32,
}

#[derive(Deserialize, JsonSchema, outlive::Form)]
struct Seat {
    window: bool,
}

#[derive(Deserialize, JsonSchema, outlive::Form)]
struct Meal {
    #[schemars(length(min = 3))]
    meal: String,
}

/// Requests a seat and a meal in two rounds, and counts the rounds.
async fn book(round: Round<Booking>, notes: State<Notes>) -> Result<RoundOutcome<String>> {
    notes.note(format!("round {}", round.number()));
    let Some(booking) = round.state() else {
        let state = Booking { flight: "LH 1".into(), asked: 1 };
        let questions =
            InputRequestSet::new().form::<Seat>("seat", "Which seat?")?.state(&state)?;
        return Ok(RoundOutcome::Ask(questions));
    };
    let again = Booking { flight: booking.flight.clone(), asked: booking.asked + 1 };
    let seat = match round.form::<Seat>("seat")? {
        None => {
            let questions = InputRequestSet::new().form::<Seat>("seat", "Which seat?")?;
            return Ok(RoundOutcome::Ask(questions.state(&again)?));
        }
        Some(ElicitOutcome::Accepted(seat)) => seat.window,
        Some(other) => return Ok(RoundOutcome::Done(format!("no seat: {}", kind(&other)))),
    };
    let meal = match round.form::<Meal>("meal")? {
        None => {
            let questions = InputRequestSet::new().form::<Meal>("meal", "Which meal?")?;
            return Ok(RoundOutcome::Ask(questions.state(&again)?));
        }
        Some(ElicitOutcome::Accepted(meal)) => meal.meal,
        Some(other) => return Ok(RoundOutcome::Done(format!("no meal: {}", kind(&other)))),
    };
    Ok(RoundOutcome::Done(format!("{} {seat} {meal} {}", booking.flight, booking.asked)))
}

fn kind<T>(reply: &ElicitOutcome<T>) -> &'static str {
    match reply {
        ElicitOutcome::Accepted(_) => "accepted",
        ElicitOutcome::Declined => "declined",
        ElicitOutcome::Cancelled => "dismissed",
    }
}

/// Makes every kind of input request in one round, without a state.
async fn all_kinds(round: Round) -> Result<RoundOutcome<String>> {
    let (form, url) = (round.form::<Approval>("form")?, round.url("url")?);
    let (said, roots) = (round.sampled("sample")?, round.roots("roots")?);
    match (form, url, said, roots) {
        (Some(ElicitOutcome::Accepted(form)), Some(url), Some(said), Some(roots)) => {
            Ok(RoundOutcome::Done(format!(
                "{} {} {} {}",
                form.yes,
                kind(&url),
                said.model,
                roots.len()
            )))
        }
        _ => {
            let params = CreateMessageRequestParams {
                messages: vec![SamplingMessage::text(Role::User, "Hello?")],
                max_tokens: 10,
                ..Default::default()
            };
            Ok(RoundOutcome::Ask(
                InputRequestSet::new()
                    .form::<Approval>("form", "Form?")?
                    .url("url", "Go", "https://example.com")
                    .sample("sample", params)
                    .roots("roots"),
            ))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Size {
    bytes: usize,
}

/// Returns a state of the given size.
async fn large(
    round: Round<String>,
    Args(Size { bytes }): Args<Size>,
) -> Result<RoundOutcome<String>> {
    match round.state() {
        Some(state) => Ok(RoundOutcome::Done(state.len().to_string())),
        None => {
            Ok(RoundOutcome::Ask(InputRequestSet::new().roots("roots").state(&"x".repeat(bytes))?))
        }
    }
}

/// Returns a state without input requests.
async fn later(round: Round<u32>) -> Result<RoundOutcome<String>> {
    let times = round.state().copied().unwrap_or_default();
    match times {
        2 => Ok(RoundOutcome::Done("back again".into())),
        _ => Ok(RoundOutcome::Ask(InputRequestSet::new().state(&(times + 1))?)),
    }
}

/// Makes input requests without end.
async fn endless(_: Round) -> Result<RoundOutcome<String>> {
    Ok(RoundOutcome::Ask(InputRequestSet::new().form::<Approval>("more", "More?")?))
}

/// Uses steps and explicit rounds together.
async fn both(cx: Durable, round: Round, notes: State<Notes>) -> Result<RoundOutcome<String>> {
    let step: usize = cx
        .step("step", async || {
            notes.note("step");
            Ok(notes.count())
        })
        .await?;
    match round.form::<Approval>("sure")? {
        None => Ok(RoundOutcome::Ask(InputRequestSet::new().form::<Approval>("sure", "Sure?")?)),
        Some(reply) => Ok(RoundOutcome::Done(format!("{step} {}", kind(&reply)))),
    }
}

/// Returns the error that the client sent instead of an input response.
async fn refused(round: Round) -> Result<RoundOutcome<String>> {
    match round.form::<Approval>("sure") {
        Ok(None) => {
            Ok(RoundOutcome::Ask(InputRequestSet::new().form::<Approval>("sure", "Sure?")?))
        }
        Ok(Some(_)) => Err(Error::new("it was answered")),
        Err(error) => match error.durable_error() {
            Some(DurableError::ClientError { code, message, .. }) => {
                Ok(RoundOutcome::Done(format!("{code} {message}")))
            }
            _ => Err(error),
        },
    }
}

fn server(notes: &Notes) -> Server {
    let tools = [
        Tool::new("book", book),
        Tool::new("all_kinds", all_kinds),
        Tool::new("large", large),
        Tool::new("later", later),
        Tool::new("endless", endless),
        Tool::new("both", both),
        Tool::new("refused", refused),
    ];
    builder(tools)
        .state(notes.clone())
        .prompt(Prompt::new("book", book))
        .resource(Resource::new("ask://book", "book", book))
        .build()
        .unwrap()
}

async fn open(version: &str) -> (Talk, Notes) {
    let notes = Notes::default();
    (Talk::open(&server(&notes), version).await, notes)
}

fn booked(asked: &Value) -> Value {
    match asked["params"]["message"].as_str() {
        Some("Which seat?") => accept(json!({"window": true})),
        _ => accept(json!({"meal": "pasta"})),
    }
}

// M-03, M-09, M-10, M-32
#[tokio::test(start_paused = true)]
async fn explicit_rounds_receive_responses_and_state() {
    for version in WIRES {
        let (mut talk, notes) = open(version).await;
        let played = talk.call("book", booked).await;
        assert_eq!(played.text(), "LH 1 true pasta 2", "{version}");
        assert_eq!(played.messages(), ["Which seat?", "Which meal?"]);
        assert_eq!(notes.take(), ["round 0", "round 1", "round 2"], "{version}");
    }
}

// M-02
#[tokio::test(start_paused = true)]
async fn explicit_rounds_work_in_prompts_and_resources() {
    for version in WIRES {
        let (mut talk, _) = open(version).await;
        let prompt = talk.request("prompts/get", json!({"name": "book"}), booked).await.answer;
        let text = &prompt["result"]["messages"][0]["content"]["text"];
        assert_eq!(text, "LH 1 true pasta 2", "{version}: {prompt}");
        let read =
            talk.request("resources/read", json!({"uri": "ask://book"}), booked).await.answer;
        let text = &read["result"]["contents"][0]["text"];
        assert_eq!(text, "LH 1 true pasta 2", "{version}: {read}");
    }
}

// M-05: one round with input requests of every kind
#[tokio::test(start_paused = true)]
async fn explicit_round_sends_its_input_requests_together() {
    for version in WIRES {
        let (mut talk, _) = open(version).await;
        let played = talk
            .call("all_kinds", |asked| match asked["method"].as_str() {
                Some("roots/list") => json!({"roots": [{"uri": "file:///"}]}),
                Some("sampling/createMessage") => json!({
                    "role": "assistant",
                    "content": {"type": "text", "text": "x"},
                    "model": "parrot",
                }),
                _ if asked["params"]["mode"] == "url" => decline(),
                _ => accept(json!({"yes": true})),
            })
            .await;
        assert_eq!(played.text(), "true declined parrot 1", "{version}");
        assert_eq!(played.asked.len(), 4);
    }
}

// M-11, M-12, M-14
#[tokio::test(start_paused = true)]
async fn explicit_round_with_missing_response_is_repeated() {
    let (mut talk, _) = open(MODERN).await;
    let first = talk.begin("book").await;
    let missing = talk.back("book", &first, json!({"meal": accept(json!({"meal": "soup"}))})).await;
    assert_eq!(keys(&missing), ["seat"], "unsolicited responses are ignored");
    let seat = json!({"seat": accept(json!({"window": false}))});
    let second = talk.back("book", &missing, seat).await;
    assert_eq!(keys(&second), ["meal"]);
    // An invalid input response counts as missing; the repeated input request has a new key.
    let misfit = json!({"meal": accept(json!({"meal": "x"}))});
    let third = talk.back("book", &second, misfit).await;
    assert_eq!(keys(&third), ["meal#2"]);
    let last = json!({"meal#2": accept(json!({"meal": "soup"})), "meal": decline()});
    assert_eq!(text_of(&talk.back("book", &third, last).await), "LH 1 false soup 4");
}

// M-14
#[tokio::test(start_paused = true)]
async fn explicit_round_of_waiting_call_repeats_invalid_response() {
    let (mut talk, _) = open("2025-11-25").await;
    let mut answers = vec![
        accept(json!({"meal": "soup"})),
        accept(json!({"meal": "x"})),
        accept(json!({"window": false})),
        accept(json!({})),
    ];
    let played = talk.call("book", |_| answers.pop().unwrap()).await;
    assert_eq!(played.text(), "LH 1 false soup 4");
    assert_eq!(played.messages(), ["Which seat?", "Which seat?", "Which meal?", "Which meal?"]);
}

// M-15
#[tokio::test(start_paused = true)]
async fn explicit_round_receives_declined_response() {
    for version in WIRES {
        let (mut talk, _) = open(version).await;
        let played = talk.call("book", |_| decline()).await;
        assert_eq!(played.text(), "no seat: declined", "{version}");
        let played = talk.call("book", |_| json!({"action": "cancel"})).await;
        assert_eq!(played.text(), "no seat: dismissed", "{version}");
    }
}

// M-13
#[tokio::test(start_paused = true)]
async fn explicit_round_with_malformed_response_is_rejected() {
    let (mut talk, _) = open(MODERN).await;
    let first = talk.begin("book").await;
    let answer = talk.back("book", &first, json!({"seat": {"action": 1}})).await;
    assert_eq!(refusal_of(&answer).0, -32602);
    let params = json!({"name": "refused", "inputResponses": {"sure": 5}});
    assert_eq!(refusal_of(&talk.once("tools/call", params).await).0, -32602);
}

// M-16
#[tokio::test(start_paused = true)]
async fn explicit_round_reads_responses_without_state() {
    let (mut talk, _) = open(MODERN).await;
    let params = json!({"name": "both", "inputResponses": {"sure": accept(json!({"yes": true}))}});
    assert_eq!(text_of(&talk.once("tools/call", params).await), "1 accepted");
}

// ELIC-21
#[tokio::test(start_paused = true)]
async fn explicit_round_receives_client_error() {
    let (mut talk, _) = open("2025-11-25").await;
    let id = talk.pipe.send("tools/call", json!({"name": "refused"})).await;
    let asked = talk.pipe.read().await;
    let error = json!({"code": -1, "message": "User rejected"});
    talk.pipe.send_json(&json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    assert_eq!(text_of(&talk.pipe.answer(id).await), "-1 User rejected");
}

// M-43: a state of another type is ignored, and the call starts again
#[tokio::test(start_paused = true)]
async fn explicit_round_state_of_another_type_restarts_call() {
    async fn numbers(round: Round<u32>) -> Result<RoundOutcome<String>> {
        match round.state() {
            Some(state) => Ok(RoundOutcome::Done(format!("state {state}"))),
            None => Ok(RoundOutcome::Ask(InputRequestSet::new().roots("roots").state(&7)?)),
        }
    }
    async fn texts(round: Round<String>) -> Result<RoundOutcome<String>> {
        match round.state() {
            Some(state) => Ok(RoundOutcome::Done(format!("state {state}"))),
            None => Ok(RoundOutcome::Ask(InputRequestSet::new().roots("again").state(&"seven")?)),
        }
    }
    let replica = |tool| builder([tool]).seal_keys(SealKeys::new([7; 32])).build().unwrap();
    let (old, new) = (replica(Tool::new("t", numbers)), replica(Tool::new("t", texts)));
    let (log, _guard) = logged();
    let first = Talk::open(&old, MODERN).await.begin("t").await;
    let mut talk = Talk::open(&new, MODERN).await;
    let again = talk.back("t", &first, json!({"roots": {"roots": []}})).await;
    assert_eq!(keys(&again), ["again"]);
    let log = log.take();
    assert!(log.iter().any(|line| line.starts_with("WARN") && line.contains("state")), "{log:?}");
    let last = talk.back("t", &again, json!({"again": {"roots": []}})).await;
    assert_eq!(text_of(&last), "state seven");
}

// M-30
#[tokio::test(start_paused = true)]
async fn explicit_round_state_over_limit_fails() {
    let call = |bytes: usize| json!({"name": "large", "arguments": {"bytes": bytes}});
    let (mut talk, _) = open(MODERN).await;
    let answer = talk.once("tools/call", call(16 << 10)).await;
    assert!(failure_of(&answer).contains("grows the journal"), "{answer}");
    for (version, bytes) in [(MODERN, 1_000), ("2025-11-25", 1 << 20)] {
        let (mut talk, _) = open(version).await;
        let played = talk.request("tools/call", call(bytes), |_| json!({"roots": []})).await;
        assert_eq!(played.text(), bytes.to_string(), "{version}");
    }
}

// M-03, M-40: a state without input requests
#[tokio::test(start_paused = true)]
async fn explicit_round_without_input_requests_is_called_again() {
    for version in WIRES {
        let (mut talk, _) = open(version).await;
        let played = talk.call("later", |asked| panic!("unexpected input request: {asked}")).await;
        assert_eq!(played.text(), "back again", "{version}");
    }
    let (mut talk, _) = open(MODERN).await;
    let first = talk.begin("later").await;
    state_of(&first);
    assert_eq!(first["result"].get("inputRequests"), None, "{first}");
}

// M-09
#[tokio::test(start_paused = true)]
async fn explicit_rounds_over_limit_fail() {
    for version in WIRES {
        let (mut talk, _) = open(version).await;
        let played = talk.call("endless", |_| accept(json!({"yes": true}))).await;
        assert_eq!(played.asked.len(), 16, "{version}");
        assert_eq!(failure_of(&played.answer), "no result after 16 input rounds");
    }
}

#[tokio::test(start_paused = true)]
async fn explicit_rounds_and_steps_combine() {
    for version in WIRES {
        let (mut talk, notes) = open(version).await;
        let played = talk.call("both", |_| decline()).await;
        assert_eq!(played.text(), "1 declined", "{version}");
        assert_eq!(notes.take(), ["step"], "{version}: the step ran once");
    }
}
