//! Answers that are missing, too many, or do not fit; questions that are asked side by side.

use outlive::server::{
    Durable, Result, Server, Tool,
    durable::{DurableError, JournalError},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    questions::dialogue::{
        Approval, Talk, WIRES, accept, builder, decline, failure_of, keys, questions, server,
        state_of, text_of, texts_of,
    },
    support::pipe::MODERN,
};

/// What fits is narrower than what parses.
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

/// Asks three things side by side.
async fn three(cx: Durable) -> Result<String> {
    let (a, b, c) = tokio::join!(
        cx.elicit::<Approval>("a", "A?"),
        cx.elicit::<Approval>("b", "B?"),
        cx.elicit::<Approval>("c", "C?"),
    );
    Ok(format!("{} {} {}", a?.yes, b?.yes, c?.yes))
}

/// Asks one thing after the other.
async fn one_by_one(cx: Durable) -> Result<String> {
    let first: Approval = cx.elicit("first", "First?").await?;
    let second: Approval = cx.elicit("second", "Second?").await?;
    Ok(format!("{} {}", first.yes, second.yes))
}

/// Never has enough.
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
async fn an_answer_that_is_missing_is_asked_for_again_under_the_same_key() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let first = talk.begin("one_by_one").await;
    let asked = questions(&first);
    let empty = talk.back("one_by_one", &first, json!({})).await;
    assert_eq!(questions(&empty), asked);
    let wrong = json!({"second": yes(), "First": yes(), "first#2": yes(), "": 5});
    let wrong = talk.back("one_by_one", &empty, wrong).await;
    assert_eq!(questions(&wrong), asked, "answers to what nobody asked are ignored");
    let absent = json!({"name": "one_by_one", "requestState": state_of(&wrong)});
    let absent = talk.once("tools/call", absent).await;
    assert_eq!(questions(&absent), asked, "coming back without a word is allowed");
    let right = talk.back("one_by_one", &absent, json!({"first": yes(), "nobody": 1})).await;
    assert_eq!(keys(&right), ["second"]);
    let last = talk.back("one_by_one", &right, json!({"second": no(), "first": no()})).await;
    assert_eq!(text_of(&last), "true false", "what was answered before stands");
}

// M-14, ELIC-22, ELIC-04
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_is_asked_for_again_and_the_user_is_told_why() {
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
    // The old name is none of the questions any more.
    let old = accept(json!({"count": 1, "size": "Large"}));
    round = talk.back("order", &round, json!({"order": old})).await;
    assert_eq!(keys(&round), [key.as_str()]);
    let last = talk.back("order", &round, json!({key: old})).await;
    assert_eq!(text_of(&last), "1 Large");
}

// M-14, ELIC-22
#[tokio::test(start_paused = true)]
async fn where_the_call_waits_an_answer_that_does_not_fit_is_asked_for_again_too() {
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

// M-15: a no is an answer, whatever came before it
#[tokio::test(start_paused = true)]
async fn a_user_can_say_no_when_asked_again() {
    for version in WIRES {
        let mut talk = Talk::open(&asking(), version).await;
        let mut answers = vec![decline(), accept(json!({}))];
        let played = talk.call("order", |_| answers.pop().unwrap()).await;
        assert_eq!(failure_of(&played.answer), "the user declined the input request `order`");
    }
}

// M-04, M-07
#[tokio::test(start_paused = true)]
async fn questions_that_are_asked_side_by_side_go_out_together() {
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
    // Answered in another order than asked.
    for (question, answer) in [(2, no()), (0, yes()), (1, yes())] {
        talk.pipe.reply(&asked[question], answer).await;
    }
    assert_eq!(text_of(&talk.pipe.answer(id).await), "true true false");
}

// M-32
#[tokio::test(start_paused = true)]
async fn what_was_answered_is_kept_and_the_rest_is_asked_again() {
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
async fn answers_without_a_state_are_taken_when_their_questions_come_up() {
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

// M-16, M-32: such answers are in the state from then on
#[tokio::test(start_paused = true)]
async fn answers_that_came_without_a_state_are_kept_in_the_next_one() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let params = json!({"name": "three", "inputResponses": {"a": yes(), "c": no()}});
    let first = talk.once("tools/call", params).await;
    let last = talk.back("three", &first, json!({"b": yes(), "a": no()})).await;
    assert_eq!(text_of(&last), "true true false");
}

// M-09
#[tokio::test(start_paused = true)]
async fn a_call_that_never_has_enough_is_given_up() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let played = talk.call("endless", |_| yes()).await;
    assert_eq!(played.asked.len(), 16);
    assert_eq!(failure_of(&played.answer), "no result after 16 input rounds");
    let texts = texts_of(&played.answer);
    assert_eq!(texts[0], "so far so good", "what was emitted is part of every result");
}

// M-09
#[tokio::test(start_paused = true)]
async fn how_often_a_call_may_come_back_can_be_set() {
    let server = builder([Tool::new("endless", endless)]);
    let server = server.limits(|limits| limits.max_rounds = 3).build().unwrap();
    let played = Talk::open(&server, MODERN).await.call("endless", |_| yes()).await;
    assert_eq!(played.asked.len(), 3);
    assert_eq!(failure_of(&played.answer), "no result after 3 input rounds");
}

// M-09, X-32: rounds that bring nothing count as well
#[tokio::test(start_paused = true)]
async fn rounds_without_answers_are_rounds() {
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
async fn where_the_call_waits_one_question_is_not_asked_for_ever() {
    async fn stubborn(cx: Durable) -> Result<String> {
        match cx.elicit::<Order>("order", "What?").await {
            Ok(_) => Ok("fitted".into()),
            Err(error) => match error.durable_error() {
                Some(DurableError::InvalidResponse { key }) => {
                    Ok(format!("gave up on {key}: {error}"))
                }
                _ => Err(error),
            },
        }
    }
    let server = builder([Tool::new("stubborn", stubborn)]);
    let server = server.limits(|limits| limits.max_rounds = 4).build().unwrap();
    let mut talk = Talk::open(&server, "2025-11-25").await;
    let played = talk.call("stubborn", |_| accept(json!({}))).await;
    assert_eq!(played.asked.len(), 5, "once, and four times again");
    assert_eq!(
        played.text(),
        "gave up on order: no input response to `order` was valid after the maximum number of attempts"
    );
    talk.pipe.quiet().await;
}

//
#[tokio::test(start_paused = true)]
async fn only_so_many_questions_are_open_at_once() {
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
        assert_eq!(text_of(&answer), "c 2: with `c` more than 2 questions are open at once");
        talk.pipe.quiet().await;
    }
}
