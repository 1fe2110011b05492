//! Rounds: missing, extra and invalid input responses, parallel input requests, and limits.

use outlive::server::{
    Durable, Result, Server, Tool,
    durable::{DurableError, JournalError},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    input::dialogue::{
        Approval, Talk, WIRES, accept, builder, decline, failure_of, keys, questions, server,
        state_of, text_of, texts_of,
    },
    support::pipe::MODERN,
};

/// A form whose schema is narrower than its Rust type.
#[derive(Deserialize, JsonSchema, outlive::Form)]
struct Order {
    #[schemars(range(min = 1, max = 9))]
    count: u8,
    size: Size,
}

#[derive(Debug, Deserialize, JsonSchema, outlive::Form)]
enum Size {
    Small,
    Large,
}

async fn order(cx: Durable) -> Result<String> {
    let Order { count, size } = cx.elicit("order", "What do you want?").await?;
    Ok(format!("{count} {size:?}"))
}

/// Makes three input requests in parallel.
async fn three(cx: Durable) -> Result<String> {
    let (a, b, c) = tokio::join!(
        cx.elicit::<Approval>("a", "A?"),
        cx.elicit::<Approval>("b", "B?"),
        cx.elicit::<Approval>("c", "C?"),
    );
    Ok(format!("{} {} {}", a?.yes, b?.yes, c?.yes))
}

/// Makes two input requests in sequence.
async fn one_by_one(cx: Durable) -> Result<String> {
    let first: Approval = cx.elicit("first", "First?").await?;
    let second: Approval = cx.elicit("second", "Second?").await?;
    Ok(format!("{} {}", first.yes, second.yes))
}

/// Makes input requests without end.
async fn endless(cx: Durable) -> Result<String> {
    cx.emit("so far so good").await?;
    for number in 0.. {
        cx.elicit::<Approval>(("more", number), format!("More than {number}?")).await?;
    }
    Ok("never".into())
}

fn asking() -> Server {
    server([
        Tool::new("order", order),
        Tool::new("three", three),
        Tool::new("one_by_one", one_by_one),
        Tool::new("endless", endless),
    ])
}

fn yes() -> Value {
    accept(json!({"yes": true}))
}

fn no() -> Value {
    accept(json!({"yes": false}))
}

// M-11, M-12
#[tokio::test(start_paused = true)]
async fn missing_input_response_is_requested_again_under_same_key() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let first = talk.begin("one_by_one").await;
    let asked = questions(&first);
    let empty = talk.back("one_by_one", &first, json!({})).await;
    assert_eq!(questions(&empty), asked);
    let wrong = json!({"second": yes(), "First": yes(), "first#2": yes(), "": 5});
    let wrong = talk.back("one_by_one", &empty, wrong).await;
    assert_eq!(questions(&wrong), asked, "unsolicited responses are ignored");
    let absent = json!({"name": "one_by_one", "requestState": state_of(&wrong)});
    let absent = talk.once("tools/call", absent).await;
    assert_eq!(questions(&absent), asked, "a round without responses is allowed");
    let right = talk.back("one_by_one", &absent, json!({"first": yes(), "nobody": 1})).await;
    assert_eq!(keys(&right), ["second"]);
    let last = talk.back("one_by_one", &right, json!({"second": no(), "first": no()})).await;
    assert_eq!(text_of(&last), "true false", "an earlier response is kept");
}

// M-14, ELIC-22, ELIC-04
#[tokio::test(start_paused = true)]
async fn invalid_input_response_is_requested_again_under_new_key_with_reason() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let first = talk.begin("order").await;
    assert_eq!(questions(&first)["order"]["params"]["message"], "What do you want?");
    let mut round = first;
    let mut key = "order".to_owned();
    for (time, (content, why)) in [
        (json!({"count": 0, "size": "Small"}), "`count` must be at least 1"),
        (json!({"count": 10, "size": "Small"}), "`count` must be at most 9"),
        (json!({"count": 1.5, "size": "Small"}), "`count` must be a whole number"),
        (json!({"count": "1", "size": "Small"}), "`count` must be a number"),
        (json!({"count": 1, "size": "Huge"}), "`size` must be one of Small, Large"),
        (json!({"count": 1}), "`size` is missing"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = json!({key.clone(): accept(content)});
        round = talk.back("order", &round, answer).await;
        key = format!("order#{}", time + 2);
        assert_eq!(keys(&round), [key.as_str()]);
        let message = questions(&round)[&key]["params"]["message"].clone();
        assert_eq!(message, format!("What do you want?\n\nThe last response was invalid: {why}."));
    }
    // The previous key is no longer valid.
    let old = accept(json!({"count": 1, "size": "Large"}));
    round = talk.back("order", &round, json!({"order": old})).await;
    assert_eq!(keys(&round), [key.as_str()]);
    let last = talk.back("order", &round, json!({key: old})).await;
    assert_eq!(text_of(&last), "1 Large");
}

// M-14, ELIC-22
#[tokio::test(start_paused = true)]
async fn invalid_input_response_to_waiting_call_is_requested_again() {
    for version in ["2025-06-18", "2025-11-25"] {
        let mut talk = Talk::open(&asking(), version).await;
        let mut answers = vec![
            accept(json!({"count": 2, "size": "Large"})),
            json!({"action": "accept"}),
            accept(json!({"count": 0, "size": "Large"})),
        ];
        let played = talk.call("order", |_| answers.pop().unwrap()).await;
        assert_eq!(played.text(), "2 Large");
        let because =
            |why: &str| format!("What do you want?\n\nThe last response was invalid: {why}.");
        assert_eq!(
            played.messages(),
            [
                "What do you want?",
                &because("`count` must be at least 1"),
                &because("`count` is missing")
            ]
        );
    }
}

// M-15: `decline` ends the input request, also after an invalid response
#[tokio::test(start_paused = true)]
async fn repeated_input_request_can_be_declined() {
    for version in WIRES {
        let mut talk = Talk::open(&asking(), version).await;
        let mut answers = vec![decline(), accept(json!({}))];
        let played = talk.call("order", |_| answers.pop().unwrap()).await;
        assert_eq!(failure_of(&played.answer), "the user declined the input request `order`");
    }
}

// M-04, M-07
#[tokio::test(start_paused = true)]
async fn parallel_input_requests_are_sent_together() {
    let server = asking();
    let mut talk = Talk::open(&server, MODERN).await;
    let first = talk.begin("three").await;
    assert_eq!(keys(&first), ["a", "b", "c"]);
    for question in questions(&first).values() {
        assert_eq!(question.get("id").or(question.get("jsonrpc")), None, "{question}");
    }
    let last = talk.back("three", &first, json!({"c": no(), "a": yes(), "b": yes()})).await;
    assert_eq!(text_of(&last), "true true false");

    let mut talk = Talk::open(&server, "2025-11-25").await;
    let id = talk.pipe.send("tools/call", json!({"name": "three"})).await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(talk.pipe.read().await);
    }
    talk.pipe.quiet().await;
    // The client responds in another order.
    for (question, answer) in [(2, no()), (0, yes()), (1, yes())] {
        talk.pipe.reply(&asked[question], answer).await;
    }
    assert_eq!(text_of(&talk.pipe.answer(id).await), "true true false");
}

// M-32
#[tokio::test(start_paused = true)]
async fn partial_input_responses_are_kept_and_rest_is_requested_again() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let first = talk.begin("three").await;
    let second = talk.back("three", &first, json!({"b": yes()})).await;
    assert_eq!(keys(&second), ["a", "c"]);
    let misfit = json!({"a": accept(json!({"yes": "perhaps"})), "b": no()});
    let third = talk.back("three", &second, misfit).await;
    assert_eq!(keys(&third), ["a#2", "c"]);
    let last = talk.back("three", &third, json!({"a#2": no(), "c": no(), "b": no()})).await;
    assert_eq!(text_of(&last), "false true false");
}

// M-16
#[tokio::test(start_paused = true)]
async fn input_responses_without_request_state_are_used() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let mut call = async |tool: &str, responses: Value| {
        talk.once("tools/call", json!({"name": tool, "inputResponses": responses})).await
    };
    let both = call("one_by_one", json!({"second": no(), "first": yes(), "third": 5})).await;
    assert_eq!(text_of(&both), "true false");
    let one = call("one_by_one", json!({"first": yes()})).await;
    assert_eq!(keys(&one), ["second"]);
    let two = call("three", json!({"a": yes(), "c": yes()})).await;
    assert_eq!(keys(&two), ["b"]);
    let none = call("three", json!({})).await;
    assert_eq!(keys(&none), ["a", "b", "c"]);
    let misfit =
        call("order", json!({"order": accept(json!({"count": 0, "size": "Small"}))})).await;
    assert_eq!(keys(&misfit), ["order#2"]);
}

// M-16, M-32: the next request state contains these input responses
#[tokio::test(start_paused = true)]
async fn input_responses_without_request_state_are_kept_in_next_state() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let params = json!({"name": "three", "inputResponses": {"a": yes(), "c": no()}});
    let first = talk.once("tools/call", params).await;
    let last = talk.back("three", &first, json!({"b": yes(), "a": no()})).await;
    assert_eq!(text_of(&last), "true true false");
}

// M-09
#[tokio::test(start_paused = true)]
async fn call_over_round_limit_fails() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let played = talk.call("endless", |_| yes()).await;
    assert_eq!(played.asked.len(), 16);
    assert_eq!(failure_of(&played.answer), "no result after 16 input rounds");
    let texts = texts_of(&played.answer);
    assert_eq!(texts[0], "so far so good", "emitted content is part of every result");
}

// M-09
#[tokio::test(start_paused = true)]
async fn round_limit_is_configurable() {
    let server = builder([Tool::new("endless", endless)]);
    let server = server.limits(|limits| limits.max_rounds = 3).build().unwrap();
    let played = Talk::open(&server, MODERN).await.call("endless", |_| yes()).await;
    assert_eq!(played.asked.len(), 3);
    assert_eq!(failure_of(&played.answer), "no result after 3 input rounds");
}

// M-09, X-32: rounds without input responses count too
#[tokio::test(start_paused = true)]
async fn rounds_without_input_responses_count_toward_limit() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let mut round = talk.begin("order").await;
    for _ in 0..15 {
        round = talk.back("order", &round, json!({})).await;
        assert_eq!(keys(&round), ["order"]);
    }
    let last = talk.back("order", &round, json!({})).await;
    assert_eq!(failure_of(&last), "no result after 16 input rounds");
}

// M-09
#[tokio::test(start_paused = true)]
async fn repeated_input_request_of_waiting_call_fails_at_limit() {
    async fn stubborn(cx: Durable) -> Result<String> {
        match cx.elicit::<Order>("order", "What?").await {
            Ok(_) => Ok("fitted".into()),
            Err(error) => match error.durable_error() {
                Some(DurableError::InvalidResponse { key }) => {
                    Ok(format!("no value for {key}: {error}"))
                }
                _ => Err(error),
            },
        }
    }
    let server = builder([Tool::new("stubborn", stubborn)]);
    let server = server.limits(|limits| limits.max_rounds = 4).build().unwrap();
    let mut talk = Talk::open(&server, "2025-11-25").await;
    let played = talk.call("stubborn", |_| accept(json!({}))).await;
    assert_eq!(played.asked.len(), 5, "one input request and four repetitions");
    assert_eq!(
        played.text(),
        "no value for order: no input response to `order` was valid after the maximum number of attempts"
    );
    talk.pipe.quiet().await;
}

//
#[tokio::test(start_paused = true)]
async fn open_input_requests_over_limit_fail() {
    async fn greedy(cx: Durable) -> Result<String> {
        let asked = tokio::try_join!(
            cx.elicit::<Approval>("a", "A?"),
            cx.elicit::<Approval>("b", "B?"),
            cx.elicit::<Approval>("c", "C?"),
        );
        let error = asked.unwrap_err();
        let Some(DurableError::Journal(JournalError::TooManyInputRequests { key, limit })) =
            error.durable_error()
        else {
            return Err(error);
        };
        Ok(format!("{key} {limit}: {error}"))
    }
    for version in WIRES {
        let server = builder([Tool::new("greedy", greedy)]);
        let server = server.limits(|limits| limits.max_open_inputs = 2).build().unwrap();
        let mut talk = Talk::open(&server, version).await;
        let answer = talk.call_quietly("greedy").await;
        assert_eq!(
            text_of(&answer),
            "c 2: the input request `c` exceeds the limit of 2 open input requests"
        );
        talk.pipe.quiet().await;
    }
}
