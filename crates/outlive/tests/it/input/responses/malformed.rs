//! Malformed input responses and request states.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use outlive::server::{
    Durable, Prompt, Resource, Result, Server, State, Tool, durable::DurableError,
};
use outlive::wire::{CreateMessageRequestParams, Role, SamplingMessage};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{
        Approval, Talk, accept, builder, everything, keys, refusal_of, state_of, text_of,
    },
    support::{
        http::{HttpFixture, Request},
        pipe::MODERN,
    },
};

/// Number of handler runs.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

async fn approve(cx: Durable, runs: State<Runs>) -> Result<String> {
    runs.0.fetch_add(1, Ordering::Relaxed);
    let approval: Approval = cx.elicit("approve", "Deploy?").await?;
    Ok(approval.yes.to_string())
}

async fn visit(cx: Durable) -> Result<String> {
    cx.elicit_url("visit", "Go there", "https://example.com").await?;
    Ok("gone".into())
}

async fn sample(cx: Durable) -> Result<String> {
    let params = CreateMessageRequestParams {
        messages: vec![SamplingMessage::text(Role::User, "Hello?")],
        max_tokens: 10,
        ..Default::default()
    };
    Ok(cx.sample("sample", params).await?.model)
}

async fn roots(cx: Durable) -> Result<String> {
    Ok(cx.roots("roots").await?.len().to_string())
}

fn asking(runs: &Runs) -> Server {
    let tools = [
        Tool::new("approve", approve),
        Tool::new("visit", visit),
        Tool::new("sample", sample),
        Tool::new("roots", roots),
    ];
    builder(tools)
        .state(runs.clone())
        .prompt(Prompt::new("approve", approve))
        .resource(Resource::new("ask://approve", "approve", approve))
        .build()
        .unwrap()
}

/// The three methods that accept input responses.
fn requests() -> [(&'static str, Value); 3] {
    [
        ("tools/call", json!({"name": "approve"})),
        ("prompts/get", json!({"name": "approve"})),
        ("resources/read", json!({"uri": "ask://approve"})),
    ]
}

// M-13
#[tokio::test(start_paused = true)]
async fn input_responses_that_are_not_an_object_are_rejected() {
    let runs = Runs::default();
    let mut talk = Talk::open(&asking(&runs), MODERN).await;
    for (method, params) in requests() {
        let asked = talk.once(method, params.clone()).await;
        let state = state_of(&asked);
        runs.0.store(0, Ordering::Relaxed);
        for wrong in
            [json!(null), json!([]), json!([{"approve": 1}]), json!(""), json!(1), json!(true)]
        {
            for state in [None, Some(&state)] {
                let mut params = params.clone();
                params["inputResponses"] = wrong.clone();
                if let Some(state) = state {
                    params["requestState"] = json!(state);
                }
                let answer = talk.once(method, params).await;
                let (code, message) = refusal_of(&answer);
                assert_eq!(code, -32602, "{answer}");
                assert!(message.contains("`params.inputResponses` must be an object"), "{message}");
            }
        }
        assert_eq!(runs.0.load(Ordering::Relaxed), 0, "no handler ran");
    }
}

// M-13, M-28
#[tokio::test(start_paused = true)]
async fn request_state_that_is_not_a_string_is_rejected() {
    let mut talk = Talk::open(&asking(&Runs::default()), MODERN).await;
    for (method, params) in requests() {
        for wrong in [json!(null), json!(1), json!({}), json!(["x"]), json!(false)] {
            let mut params = params.clone();
            params["requestState"] = wrong;
            let answer = talk.once(method, params).await;
            let (code, message) = refusal_of(&answer);
            assert_eq!(code, -32602, "{answer}");
            assert!(message.contains("requestState"), "{message}");
        }
    }
}

/// Values that are not valid input responses for these tools.
fn wrong_answers() -> Vec<(&'static str, Value)> {
    let mut rows = Vec::new();
    for tool in ["approve", "visit"] {
        for wrong in [
            json!(null),
            json!(true),
            json!("accept"),
            json!([]),
            json!({}),
            json!({"action": "maybe"}),
            json!({"action": "Accept", "content": {"yes": true}}),
            json!({"action": null}),
            json!({"content": {"yes": true}}),
        ] {
            rows.push((tool, wrong));
        }
    }
    for wrong in [
        json!({}),
        json!({"role": "assistant", "content": {"type": "text", "text": "x"}}),
        json!({"role": "nobody", "content": {"type": "text", "text": "x"}, "model": "m"}),
        json!({"role": "assistant", "content": "x", "model": "m"}),
        accept(json!({})),
    ] {
        rows.push(("sample", wrong));
    }
    for wrong in [
        json!({}),
        json!({"roots": null}),
        json!({"roots": [{"name": "x"}]}),
        json!({"roots": ["file:///x"]}),
        json!({"roots": [{"uri": "file:///x"}, {"uri": "https://example.com"}]}),
    ] {
        rows.push(("roots", wrong));
    }
    rows
}

// M-13
#[tokio::test(start_paused = true)]
async fn malformed_input_response_is_rejected_with_its_key() {
    let mut talk = Talk::open(&asking(&Runs::default()), MODERN).await;
    for (tool, wrong) in wrong_answers() {
        let asked = talk.begin(tool).await;
        assert_eq!(keys(&asked), [tool]);
        let with_state = talk.back(tool, &asked, json!({tool: wrong})).await;
        let without = json!({"name": tool, "inputResponses": {tool: wrong}});
        let without = talk.once("tools/call", without).await;
        for answer in [with_state, without] {
            let (code, message) = refusal_of(&answer);
            assert_eq!(code, -32602, "{wrong}: {answer}");
            let begins = format!("`params.inputResponses`: `{tool}`: ");
            assert!(message.starts_with(&begins), "{wrong}: {message}");
        }
        // The rejection has no effect: the client can still answer the same round.
        let again = talk.back(tool, &asked, json!({})).await;
        assert_eq!(keys(&again), [tool]);
    }
}

// M-12, M-13: only entries for open input requests are validated
#[tokio::test(start_paused = true)]
async fn malformed_entry_for_unknown_key_is_ignored() {
    let mut talk = Talk::open(&asking(&Runs::default()), MODERN).await;
    let asked = talk.begin("approve").await;
    let responses = json!({"approve": accept(json!({"yes": true})), "sample": 5, "": null});
    assert_eq!(text_of(&talk.back("approve", &asked, responses).await), "true");
}

// M-13
#[tokio::test(start_paused = true)]
async fn malformed_input_response_for_prompt_or_resource_is_rejected() {
    let mut talk = Talk::open(&asking(&Runs::default()), MODERN).await;
    for (method, params) in requests() {
        let state = state_of(&talk.once(method, params.clone()).await);
        for state in [None, Some(state)] {
            let mut params = params.clone();
            params["inputResponses"] = json!({"approve": {"action": 1}});
            if let Some(state) = state {
                params["requestState"] = json!(state);
            }
            assert_eq!(refusal_of(&talk.once(method, params).await).0, -32602, "{method}");
        }
    }
}

// M-13, ELIC-21, ROOT-02: there is no request to reject, so the input request fails
#[tokio::test(start_paused = true)]
async fn malformed_input_response_to_waiting_call_fails_input_request() {
    async fn told(cx: Durable) -> Result<String> {
        let error = cx.elicit::<Approval>("approve", "Deploy?").await.unwrap_err();
        let Some(DurableError::ClientError { key, code, .. }) = error.durable_error() else {
            return Err(error);
        };
        let (form, code) = (key.clone(), *code);
        let error = cx.roots("roots").await.unwrap_err();
        let Some(DurableError::ClientError { message, .. }) = error.durable_error() else {
            return Err(error);
        };
        Ok(format!("{form} {code}, {message}"))
    }
    let server = builder([Tool::new("told", told)]).build().unwrap();
    let mut talk = Talk::open(&server, "2025-11-25").await;
    let played = talk
        .call("told", |asked| match asked["method"].as_str() {
            Some("roots/list") => json!({"roots": [{"uri": "https://example.com/"}]}),
            _ => json!({"action": "maybe"}),
        })
        .await;
    let expected = "approve -32602, the root `https://example.com/` is not a file:// URI";
    assert_eq!(played.text(), expected);
}

// M-13
#[tokio::test]
async fn malformed_input_response_over_http_is_rejected() {
    let server = asking(&Runs::default());
    let server = HttpFixture::of(server, outlive::server::http::HttpConfig::new()).await;
    let call = Request::call("approve", json!({})).reserved("clientCapabilities", everything());
    for wrong in [json!(null), json!([]), json!({"approve": 1})] {
        let response = server.send(call.clone().param("inputResponses", wrong)).await;
        assert_eq!(refusal_of(&response.json()).0, -32602);
    }
}
