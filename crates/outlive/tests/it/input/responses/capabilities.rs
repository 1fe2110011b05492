//! A client gets only input requests that it declares and that its protocol version has.

use outlive::{
    server::{
        Durable, Result, Server, Tool,
        durable::{DurableError, InputRequestSet, Round, RoundOutcome},
        http::HttpConfig,
    },
    wire::{
        CreateMessageRequestParams, RequestedSchema, Role, SamplingMessage, StringSchema,
        UntitledItems, UntitledMultiSelectEnumSchema,
    },
};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{Approval, Talk, accept, keys, refusal_of, server, state_of, text_of},
    support::{
        http::{HttpFixture, Request},
        pipe::{MODERN, REVISIONS, raw},
    },
};

async fn form(cx: Durable) -> Result<String> {
    let schema = RequestedSchema::default().with_optional("x", StringSchema::default());
    cx.elicit_with::<Value>("it", "?", schema).await?;
    Ok("asked".into())
}

async fn several(cx: Durable) -> Result<String> {
    let field = UntitledMultiSelectEnumSchema {
        items: UntitledItems { values: vec!["a".into()] },
        ..Default::default()
    };
    let schema = RequestedSchema::default().with_optional("x", field);
    cx.elicit_with::<Value>("it", "?", schema).await?;
    Ok("asked".into())
}

async fn url(cx: Durable) -> Result<String> {
    cx.elicit_url("it", "?", "https://example.com/").await?;
    Ok("asked".into())
}

fn conversation() -> CreateMessageRequestParams {
    CreateMessageRequestParams {
        messages: vec![SamplingMessage::text(Role::User, "Hello?")],
        max_tokens: 10,
        ..Default::default()
    }
}

async fn sample(cx: Durable) -> Result<String> {
    cx.sample("it", conversation()).await?;
    Ok("asked".into())
}

async fn tools(cx: Durable) -> Result<String> {
    let tool = outlive::wire::Tool::new("t", raw(&json!({"type": "object"})));
    let params = CreateMessageRequestParams { tools: Some(vec![tool]), ..conversation() };
    cx.sample("it", params).await?;
    Ok("asked".into())
}

async fn roots(cx: Durable) -> Result<String> {
    cx.roots("it").await?;
    Ok("asked".into())
}

/// Elicits, and handles the error if the client does not support it.
async fn modest(cx: Durable) -> Result<String> {
    match cx.elicit::<Approval>("it", "?").await {
        Ok(approval) => Ok(format!("asked {}", approval.yes)),
        Err(error) => match error.durable_error() {
            Some(DurableError::MissingCapability { key, required }) => {
                Ok(format!("{key} needs {}", required.get()))
            }
            _ => Err(error),
        },
    }
}

async fn explicit(round: Round) -> Result<RoundOutcome<String>> {
    Ok(match round.sampled("it")? {
        None => RoundOutcome::Ask(InputRequestSet::new().sample("it", conversation())),
        Some(_) => RoundOutcome::Done("asked".into()),
    })
}

fn asking() -> Server {
    server([
        Tool::new("form", form),
        Tool::new("several", several),
        Tool::new("url", url),
        Tool::new("sample", sample),
        Tool::new("tools", tools),
        Tool::new("roots", roots),
        Tool::new("modest", modest),
        Tool::new("explicit", explicit),
    ])
}

/// Every combination of the capabilities that a client can declare.
fn declarations() -> Vec<Value> {
    let elicitation = [
        None,
        Some(json!({})),
        Some(json!({"form": {}})),
        Some(json!({"url": {}})),
        Some(json!({"form": {}, "url": {}})),
    ];
    let sampling =
        [None, Some(json!({})), Some(json!({"tools": {}})), Some(json!({"context": {}}))];
    let mut all = Vec::new();
    for elicitation in &elicitation {
        for sampling in &sampling {
            for roots in [None, Some(json!({}))] {
                let mut can = json!({});
                let declared =
                    [("elicitation", elicitation), ("sampling", sampling), ("roots", &roots)];
                for (name, value) in declared {
                    if let Some(value) = value {
                        can[name] = value.clone();
                    }
                }
                all.push(can);
            }
        }
    }
    all
}

/// Whether the specification allows this input request. `Err` is the missing capability.
fn askable(kind: &str, version: &str, can: &Value) -> Result<(), Value> {
    let elicits = can.get("elicitation");
    let urls = can["elicitation"].get("url").is_some();
    let forms = elicits.is_some() && (can["elicitation"].get("form").is_some() || !urls);
    let (can, needed) = match kind {
        "form" => (forms && version >= "2025-06-18", json!({"elicitation": {"form": {}}})),
        "several" => (forms && version >= "2025-11-25", json!({"elicitation": {"form": {}}})),
        "url" => (urls && version >= "2025-11-25", json!({"elicitation": {"url": {}}})),
        "sample" => (can.get("sampling").is_some(), json!({"sampling": {}})),
        "tools" => {
            let tools = can["sampling"].get("tools").is_some();
            (tools && version >= "2025-11-25", json!({"sampling": {"tools": {}}}))
        }
        "roots" => (can.get("roots").is_some(), json!({"roots": {}})),
        other => panic!("no such kind: {other}"),
    };
    if can { Ok(()) } else { Err(needed) }
}

/// A valid input response to any input request.
fn any_answer(asked: &Value) -> Value {
    match asked["method"].as_str() {
        Some("elicitation/create") => accept(json!({})),
        Some("sampling/createMessage") => json!({
            "role": "assistant",
            "content": {"type": "text", "text": "Hello!"},
            "model": "parrot",
        }),
        Some("roots/list") => json!({"roots": []}),
        _ => panic!("not an input request: {asked}"),
    }
}

// M-01, M-05, M-06, ELIC-02, ELIC-24, SAMP-02, ROOT-06, MT-10
#[tokio::test(start_paused = true)]
async fn input_request_without_declared_capability_is_never_sent() {
    let server = asking();
    for version in REVISIONS {
        for can in declarations() {
            let mut talk = Talk::open_with(&server, version, can.clone()).await;
            for kind in ["form", "several", "url", "sample", "tools", "roots"] {
                let played = talk.call(kind, any_answer).await;
                let row = format!("{kind} of {version} with {can}: {played:?}");
                match askable(kind, version, &can) {
                    Ok(()) => {
                        assert_eq!(played.asked.len(), 1, "{row}");
                        assert_eq!(text_of(&played.answer), "asked", "{row}");
                    }
                    Err(needed) => {
                        assert_eq!(played.asked.len() + played.told.len(), 0, "{row}");
                        let (code, message) = refusal_of(&played.answer);
                        assert!(message.contains(&needed.to_string()), "{row}");
                        let data = &played.answer["error"]["data"];
                        match version == MODERN {
                            true => {
                                assert_eq!(code, -32021, "{row}");
                                assert_eq!(data, &json!({"requiredCapabilities": needed}), "{row}");
                            }
                            false => assert_eq!((code, data), (-32602, &Value::Null), "{row}"),
                        }
                    }
                }
            }
        }
    }
}

// M-06, RPC-24
#[tokio::test]
async fn missing_input_capability_over_http_is_400() {
    let server = HttpFixture::of(asking(), HttpConfig::new()).await;
    for (tool, needed) in [
        ("form", json!({"elicitation": {"form": {}}})),
        ("url", json!({"elicitation": {"url": {}}})),
        ("sample", json!({"sampling": {}})),
        ("tools", json!({"sampling": {"tools": {}}})),
        ("roots", json!({"roots": {}})),
        ("explicit", json!({"sampling": {}})),
    ] {
        let response = server.send(Request::call(tool, json!({}))).await;
        assert_eq!(response.status(), 400, "{tool}");
        let error = response.json()["error"].clone();
        assert_eq!(error["code"], -32021, "{tool}");
        assert_eq!(error["data"], json!({"requiredCapabilities": needed}), "{tool}");
        // The reported capability is the one that the client has to declare.
        let call = Request::call(tool, json!({})).reserved("clientCapabilities", needed);
        assert_eq!(keys(&server.send(call).await.json()), ["it"], "{tool}");
    }
}

// M-05, MT-09: each request declares its own capabilities
#[tokio::test(start_paused = true)]
async fn input_capabilities_are_those_of_the_current_request() {
    let mut talk = Talk::open(&asking(), MODERN).await;
    let asked = talk.begin("modest").await;
    let state = state_of(&asked);
    let can = json!({"sampling": {}});
    // An input response counts even if the client no longer declares the capability.
    let params = json!({
        "name": "modest",
        "requestState": state,
        "inputResponses": {"it": accept(json!({"yes": true}))},
    });
    let answered = talk.pipe.modern_with(can.clone(), "tools/call", params).await;
    assert_eq!(text_of(&answered), "asked true");
    // A missing input response is not requested again without the capability.
    let params = json!({"name": "modest", "requestState": state, "inputResponses": {}});
    let missing = talk.pipe.modern_with(can, "tools/call", params).await;
    assert_eq!(text_of(&missing), r#"it needs {"elicitation":{"form":{}}}"#);
}

// M-05, M-06: the handler continues, so the call is not rejected
#[tokio::test(start_paused = true)]
async fn handler_can_continue_without_input_capability() {
    for version in REVISIONS {
        let mut talk = Talk::open_with(&asking(), version, json!({})).await;
        let answer = talk.call_quietly("modest").await;
        assert_eq!(text_of(&answer), r#"it needs {"elicitation":{"form":{}}}"#, "{version}");
    }
}

// M-05: malformed capabilities count as absent
#[tokio::test(start_paused = true)]
async fn malformed_input_capabilities_count_as_absent() {
    let server = asking();
    for can in [
        json!({"elicitation": null}),
        json!({"Elicitation": {}}),
        json!({"experimental": {"elicitation": {}}}),
        json!({"extensions": {"com.example/elicitation": {}}}),
    ] {
        for version in ["2025-11-25", MODERN] {
            let mut talk = Talk::open_with(&server, version, can.clone()).await;
            let answer = talk.call_quietly("modest").await;
            assert_eq!(text_of(&answer), r#"it needs {"elicitation":{"form":{}}}"#, "{can}");
        }
    }
}
