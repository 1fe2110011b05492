//! Request states and input responses sent to handlers or versions that do not use them.

use outlive::server::{Durable, Prompt, Resource, Result, SealKeys, Server, Tool};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{Approval, Talk, accept, builder, refusal_of, state_of, text_of},
    support::pipe::{LEGACY, MODERN},
};

async fn asking(cx: Durable) -> Result<String> {
    Ok(cx.elicit::<Approval>("sure", "Sure?").await?.yes.to_string())
}

async fn plain() -> &'static str {
    "plain"
}

/// A replica whose handlers elicit, or one whose handlers no longer do.
fn replica(asks: bool) -> Server {
    let (tool, prompt, resource) = match asks {
        true => (
            Tool::new("t", asking),
            Prompt::new("t", asking),
            Resource::new("mem://t", "t", asking),
        ),
        false => {
            (Tool::new("t", plain), Prompt::new("t", plain), Resource::new("mem://t", "t", plain))
        }
    };
    let builder = builder([tool]).seal_keys(SealKeys::new([7; 32]));
    builder.prompt(prompt).resource(resource).build().unwrap()
}

fn requests() -> [(&'static str, Value); 3] {
    [
        ("tools/call", json!({"name": "t"})),
        ("prompts/get", json!({"name": "t"})),
        ("resources/read", json!({"uri": "mem://t"})),
    ]
}

// M-20, M-28, M-42
#[tokio::test(start_paused = true)]
async fn handler_without_input_ignores_valid_state_and_rejects_invalid_state() {
    let mut old = Talk::open(&replica(true), MODERN).await;
    let mut new = Talk::open(&replica(false), MODERN).await;
    for (method, params) in requests() {
        let state = state_of(&old.once(method, params.clone()).await);
        let mut back = async |state: &str| {
            let mut params = params.clone();
            params["requestState"] = json!(state);
            params["inputResponses"] = json!({"sure": accept(json!({"yes": true}))});
            new.once(method, params).await
        };
        let answer = back(&state).await;
        assert!(answer.to_string().contains("plain"), "{answer}");
        for wrong in [format!("{state}A"), state[1..].to_owned(), "AAAA".into(), String::new()] {
            let answer = back(&wrong).await;
            assert_eq!(refusal_of(&answer).0, -32602, "{method}");
            assert_eq!(answer["error"]["data"]["reason"], "request_state_invalid");
        }
    }
}

// M-12, M-13
#[tokio::test(start_paused = true)]
async fn handler_without_input_ignores_input_responses() {
    let mut talk = Talk::open(&replica(false), MODERN).await;
    for (method, mut params) in requests() {
        params["inputResponses"] = json!({"sure": 5, "": null});
        let answer = talk.once(method, params).await;
        assert!(answer.to_string().contains("plain"), "{answer}");
    }
}

// MT-10: legacy versions ignore these members
#[tokio::test(start_paused = true)]
async fn legacy_request_ignores_request_state_and_input_responses() {
    for version in LEGACY {
        let mut talk = Talk::open(&replica(false), version).await;
        for (method, params) in requests() {
            for (state, responses) in [
                (json!("AAAA"), json!({"sure": accept(json!({"yes": true}))})),
                (json!(5), json!([])),
                (json!(null), json!(null)),
            ] {
                let mut params = params.clone();
                params["requestState"] = state;
                params["inputResponses"] = responses;
                let asked = |asked: &Value| panic!("unexpected input request: {asked}");
                let played = talk.request(method, params, asked).await;
                assert!(played.answer.to_string().contains("plain"), "{version}: {played:?}");
            }
        }
    }
}

// MT-10, ELIC-19: an input response counts only for an input request of the server
#[tokio::test(start_paused = true)]
async fn legacy_call_ignores_input_responses_sent_in_advance() {
    for version in ["2025-06-18", "2025-11-25"] {
        let mut talk = Talk::open(&replica(true), version).await;
        let params = json!({
            "name": "t",
            "inputResponses": {"sure": accept(json!({"yes": true}))},
        });
        let no = accept(json!({"yes": false}));
        let played = talk.request("tools/call", params, |_| no.clone()).await;
        assert_eq!(played.asked.len(), 1, "{version}: one input request was sent");
        assert_eq!(text_of(&played.answer), "false");
    }
}
