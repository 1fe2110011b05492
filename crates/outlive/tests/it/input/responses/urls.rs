//! URL elicitation in each protocol version.

use outlive::server::{
    Durable, Result, Server, Tool,
    durable::{DurableError, ElicitOutcome, InputRequestSet, Round, RoundOutcome},
};
use serde_json::json;

use crate::{
    input::dialogue::{Talk, failure_of, keys, questions, refusal_of, server, text_of},
    support::pipe::MODERN,
};

const LOGIN: &str = "https://shop.example/login?for=anna";

async fn login(cx: Durable) -> Result<String> {
    cx.elicit_url("login", "Log in to the shop", LOGIN).await?;
    cx.complete_url_elicitation("login");
    Ok("in".into())
}

/// The same in an explicit-rounds handler.
async fn explicit(round: Round) -> Result<RoundOutcome<String>> {
    Ok(match round.url("login")? {
        None => RoundOutcome::Ask(InputRequestSet::new().url("login", "Log in to the shop", LOGIN)),
        Some(ElicitOutcome::Accepted(())) => RoundOutcome::Done("in".into()),
        Some(_) => RoundOutcome::Done("out".into()),
    })
}

async fn nowhere(cx: Durable) -> Result<String> {
    for (index, url) in
        ["", "shop", "/login", "https://", "https://a b", "login now"].iter().enumerate()
    {
        let error = match cx.elicit_url(("login", index), "Log in", *url).await {
            Err(error) => error,
            Ok(()) => return Ok(format!("`{url}` was asked")),
        };
        let Some(DurableError::InvalidInputRequest { .. }) = error.durable_error() else {
            return Err(error);
        };
    }
    Ok("none was asked".into())
}

fn asking() -> Server {
    server([
        Tool::new("login", login),
        Tool::new("explicit", explicit),
        Tool::new("nowhere", nowhere),
    ])
}

// ELIC-12, ELIC-13
#[tokio::test(start_paused = true)]
async fn url_elicitation_of_2025_11_25_has_id_and_completion_notification() {
    let server = asking();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let mut talk = Talk::open(&server, "2025-11-25").await;
        for _ in 0..2 {
            let played = talk.call("login", |_| json!({"action": "accept"})).await;
            assert_eq!(played.text(), "in");
            let id = played.asked[0]["params"]["elicitationId"].clone();
            assert_eq!(
                played.asked,
                [json!({"method": "elicitation/create", "params": {
                    "mode": "url",
                    "message": "Log in to the shop",
                    "url": LOGIN,
                    "elicitationId": id,
                }})]
            );
            assert_eq!(
                played.told,
                [json!({
                    "jsonrpc": "2.0",
                    "method": "notifications/elicitation/complete",
                    "params": {"elicitationId": id},
                })]
            );
            let id = id.as_str().expect("an id").to_owned();
            assert!(id.len() >= 16 && !ids.contains(&id), "{id} is not a unique ID");
            ids.push(id);
        }
    }
}

// ELIC-12, M-18
#[tokio::test(start_paused = true)]
async fn url_elicitation_of_2026_07_28_has_no_id_and_no_notification() {
    for tool in ["login", "explicit"] {
        let mut talk = Talk::open(&asking(), MODERN).await;
        let first = talk.begin(tool).await;
        assert_eq!(
            questions(&first)["login"],
            json!({"method": "elicitation/create", "params": {
                "mode": "url",
                "message": "Log in to the shop",
                "url": LOGIN,
            }}),
            "{tool}"
        );
        // `back` fails if another message than the response arrives.
        let last = talk.back(tool, &first, json!({"login": {"action": "accept"}})).await;
        assert_eq!(text_of(&last), "in");
        talk.pipe.quiet().await;
    }
}

// ELIC-12: explicit rounds use the same messages
#[tokio::test(start_paused = true)]
async fn url_elicitation_in_explicit_rounds_has_id_per_call() {
    let mut talk = Talk::open(&asking(), "2025-11-25").await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let played = talk.call("explicit", |_| json!({"action": "accept"})).await;
        assert_eq!(played.text(), "in");
        ids.push(played.asked[0]["params"]["elicitationId"].clone());
    }
    assert!(ids[0].is_string() && ids[0] != ids[1], "one ID for two input requests: {ids:?}");
}

// ELIC-02, ELIC-24, MT-10
#[tokio::test(start_paused = true)]
async fn url_elicitation_before_2025_11_25_is_rejected() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        for tool in ["login", "explicit"] {
            let mut talk = Talk::open(&asking(), version).await;
            let (code, message) = refused(&talk.call_quietly(tool).await);
            assert_eq!(code, -32602, "{version}");
            assert!(message.contains(r#"{"elicitation":{"url":{}}}"#), "{message}");
            talk.pipe.quiet().await;
        }
    }
}

fn refused(answer: &serde_json::Value) -> (i64, String) {
    let (code, message) = refusal_of(answer);
    (code, message.to_owned())
}

// ELIC-02
#[tokio::test(start_paused = true)]
async fn url_elicitation_without_url_capability_is_rejected() {
    for can in [json!({"elicitation": {}}), json!({"elicitation": {"form": {}}})] {
        let mut talk = Talk::open_with(&asking(), MODERN, can.clone()).await;
        assert_eq!(refusal_of(&talk.begin("login").await).0, -32021, "{can}");
        let mut talk = Talk::open_with(&asking(), "2025-11-25", can.clone()).await;
        assert_eq!(refusal_of(&talk.call_quietly("login").await).0, -32602, "{can}");
    }
}

// ELIC-12: the URL must be valid
#[tokio::test(start_paused = true)]
async fn invalid_url_is_not_elicited() {
    for version in ["2025-11-25", MODERN] {
        let mut talk = Talk::open(&asking(), version).await;
        let answer = talk.call("nowhere", |_| json!({"action": "accept"})).await.answer;
        assert_eq!(text_of(&answer), "none was asked");
    }
}

// ELIC-25, M-15
#[tokio::test(start_paused = true)]
async fn declined_url_elicitation_fails_handler() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let first = talk.begin("login").await;
    assert_eq!(keys(&first), ["login"]);
    let last = talk.back("login", &first, json!({"login": {"action": "decline"}})).await;
    assert_eq!(failure_of(&last), "the user declined the input request `login`");
}
