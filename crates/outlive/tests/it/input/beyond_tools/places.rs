//! Input requests of prompts, resources and templates, and methods without input requests.

use outlive::server::{
    Args, Durable, Prompt, Resource, ResourceTemplate, Result, Server, State, Tool,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    input::dialogue::{
        Approval, Notes, Talk, WIRES, accept, builder, cancel, decline, everything, keys,
        refusal_of, state_of,
    },
    support::{
        http::{HttpFixture, Request},
        pipe::MODERN,
    },
};

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Runs a step, elicits, and returns both results.
async fn about(cx: &Durable, notes: &Notes, name: &str) -> Result<String> {
    let step: usize = cx
        .step("step", async || {
            notes.note(format!("step for {name}"));
            Ok(notes.count())
        })
        .await?;
    let approval: Approval = cx.elicit("sure", format!("Tell about {name}?")).await?;
    Ok(format!("{name} {step} {}", approval.yes))
}

async fn prompt(
    cx: Durable,
    Args(Name { name }): Args<Name>,
    notes: State<Notes>,
) -> Result<String> {
    about(&cx, &notes, &name).await
}

async fn resource(cx: Durable, notes: State<Notes>) -> Result<String> {
    about(&cx, &notes, "everything").await
}

async fn template(
    cx: Durable,
    Args(Name { name }): Args<Name>,
    notes: State<Notes>,
) -> Result<String> {
    about(&cx, &notes, &name).await
}

async fn endless(cx: Durable) -> Result<String> {
    for number in 0.. {
        cx.elicit::<Approval>(("more", number), "More?").await?;
    }
    Ok("never".into())
}

async fn names() -> Vec<&'static str> {
    vec!["anna", "bert"]
}

fn server(notes: &Notes) -> Server {
    builder([Tool::new("about", resource), Tool::new("endless", endless)])
        .state(notes.clone())
        .prompt(Prompt::new("about", prompt).complete("name", names))
        .prompt(Prompt::new("endless", endless))
        .resource(Resource::new("ask://everything", "everything", resource))
        .resource(Resource::new("ask://endless", "endless", endless))
        .resource_template(ResourceTemplate::new("ask://one/{name}", "one", template))
        .build()
        .unwrap()
}

/// One request per kind of handler, with the expected name in its result.
fn requests() -> [(&'static str, Value, &'static str); 4] {
    [
        ("tools/call", json!({"name": "about"}), "everything"),
        ("prompts/get", json!({"name": "about", "arguments": {"name": "anna"}}), "anna"),
        ("resources/read", json!({"uri": "ask://everything"}), "everything"),
        ("resources/read", json!({"uri": "ask://one/bert"}), "bert"),
    ]
}

/// Returns the text of any of these results.
#[track_caller]
fn text(answer: &Value) -> &str {
    let result = &answer["result"];
    let texts = [
        &result["content"][0]["text"],
        &result["messages"][0]["content"]["text"],
        &result["contents"][0]["text"],
    ];
    let text = texts.into_iter().find_map(Value::as_str);
    text.unwrap_or_else(|| panic!("a text was expected: {answer}"))
}

fn yes() -> Value {
    accept(json!({"yes": true}))
}

// M-02, M-10, ELIC-23
#[tokio::test(start_paused = true)]
async fn prompts_resources_and_templates_request_input_in_every_version() {
    for version in ["2025-06-18", "2025-11-25", MODERN] {
        for (method, params, name) in requests() {
            let notes = Notes::default();
            let mut talk = Talk::open(&server(&notes), version).await;
            let played = talk.request(method, params.clone(), |_| yes()).await;
            assert_eq!(text(&played.answer), format!("{name} 1 true"), "{method} on {version}");
            assert_eq!(played.messages(), [format!("Tell about {name}?")]);
            assert_eq!(notes.take(), [format!("step for {name}")], "the step ran once");
            if version == MODERN {
                assert_eq!(played.answer["result"]["resultType"], "complete");
            }
        }
    }
}

// M-15, ELIC-21: a prompt or resource has no tool error, so `decline` is a protocol error
#[tokio::test(start_paused = true)]
async fn declined_input_of_prompt_or_resource_is_protocol_error() {
    for version in WIRES {
        for (method, params, _) in requests() {
            if method == "tools/call" {
                continue;
            }
            for (answer, why) in [
                (decline(), "the user declined the input request `sure`"),
                (cancel(), "the user cancelled the input request `sure`"),
            ] {
                let mut talk = Talk::open(&server(&Notes::default()), version).await;
                let played = talk.request(method, params.clone(), |_| answer.clone()).await;
                assert_eq!(refusal_of(&played.answer), (-1, why), "{method} on {version}");
            }
        }
    }
}

// M-11, M-14
#[tokio::test(start_paused = true)]
async fn prompt_or_resource_repeats_missing_or_invalid_input() {
    for (method, params, name) in requests() {
        let mut talk = Talk::open(&server(&Notes::default()), MODERN).await;
        let mut back = async |before: Option<&Value>, responses: Value| {
            let mut params = params.clone();
            if let Some(before) = before {
                params["requestState"] = json!(state_of(before));
                params["inputResponses"] = responses;
            }
            talk.once(method, params).await
        };
        let first = back(None, json!({})).await;
        let missing = back(Some(&first), json!({"other": yes()})).await;
        assert_eq!(keys(&missing), ["sure"], "{method}");
        let misfit = back(Some(&missing), json!({"sure": accept(json!({}))})).await;
        assert_eq!(keys(&misfit), ["sure#2"], "{method}");
        let last = back(Some(&misfit), json!({"sure#2": yes()})).await;
        assert_eq!(text(&last), format!("{name} 1 true"));
    }
}

// M-25: a request state is bound to the method and its target
#[tokio::test(start_paused = true)]
async fn request_state_of_another_method_or_target_is_rejected() {
    let mut talk = Talk::open(&server(&Notes::default()), MODERN).await;
    let mut states = Vec::new();
    for (method, params, _) in requests() {
        states.push(state_of(&talk.once(method, params).await));
    }
    for (at, (method, params, name)) in requests().into_iter().enumerate() {
        for (of, state) in states.iter().enumerate() {
            let mut params = params.clone();
            params["requestState"] = json!(state);
            params["inputResponses"] = json!({"sure": yes()});
            let answer = talk.once(method, params).await;
            match at == of {
                true => assert!(text(&answer).starts_with(name)),
                false => assert_eq!(answer["error"]["data"]["reason"], "request_state_invalid"),
            }
        }
    }
    // Another argument of the prompt, another variable of the template.
    for (at, method, params) in [
        (1, "prompts/get", json!({"name": "about", "arguments": {"name": "bert"}})),
        (3, "resources/read", json!({"uri": "ask://one/anna"})),
    ] {
        let mut params = params.clone();
        params["requestState"] = json!(states[at]);
        let answer = talk.once(method, params).await;
        assert_eq!(answer["error"]["data"]["reason"], "request_state_invalid", "{answer}");
    }
}

// M-09: the error states the reason
#[tokio::test(start_paused = true)]
async fn prompt_or_resource_over_round_limit_fails_with_reason() {
    for (method, params) in [
        ("prompts/get", json!({"name": "endless"})),
        ("resources/read", json!({"uri": "ask://endless"})),
    ] {
        let mut talk = Talk::open(&server(&Notes::default()), MODERN).await;
        let played = talk.request(method, params, |_| yes()).await;
        assert_eq!(played.asked.len(), 16, "{method}");
        let (code, message) = refusal_of(&played.answer);
        assert_eq!((code, message), (-1, "no result after 16 input rounds"), "{method}");
    }
}

// M-06
#[tokio::test]
async fn prompt_or_resource_over_http_names_missing_capability() {
    let server =
        HttpFixture::of(server(&Notes::default()), outlive::server::http::HttpConfig::new()).await;
    let requests = [
        Request::modern("prompts/get").name("about").param("arguments", json!({"name": "anna"})),
        Request::modern("resources/read").uri("ask://everything"),
        Request::modern("resources/read").uri("ask://one/bert"),
    ];
    for request in requests {
        let response = server.send(&request).await;
        assert_eq!(response.status(), 400);
        let error = response.json()["error"].clone();
        let needed = json!({"requiredCapabilities": {"elicitation": {"form": {}}}});
        assert_eq!((&error["code"], &error["data"]), (&json!(-32021), &needed));
        let able = request.reserved("clientCapabilities", everything());
        assert_eq!(keys(&server.send(able).await.json()), ["sure"]);
    }
}

// M-02
#[tokio::test(start_paused = true)]
async fn methods_without_input_requests_ignore_request_state() {
    let mut talk = Talk::open(&server(&Notes::default()), MODERN).await;
    let complete = json!({
        "ref": {"type": "ref/prompt", "name": "about"},
        "argument": {"name": "name", "value": ""},
    });
    for (method, params) in [
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("completion/complete", complete),
    ] {
        // These members have no meaning outside of rounds.
        for extra in [json!({}), json!({"requestState": "AAAA", "inputResponses": {"sure": yes()}})]
        {
            let mut params = params.clone();
            params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let result = talk.once(method, params).await["result"].clone();
            assert_eq!(result["resultType"], "complete", "{method}: {result}");
            assert_eq!(
                result.get("inputRequests").or(result.get("requestState")),
                None,
                "{method}"
            );
        }
    }
}
