//! Tool errors, protocol errors and panics, and their isolation from other calls.

use std::{fmt, panic::panic_any};

use outlive::{
    server::{
        Args, Cx, Error, Json, Prompt, ProtocolError, Resource, Result, Server, State, Tool,
        extract::{Extract, Rejection},
        response::CompletionInput,
    },
    wire::ErrorObject,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{
    gate::Gate,
    pipe::{MODERN, Pipe, REVISIONS, error, raw, result, text, with_meta},
};

#[derive(Debug)]
struct Outer(std::num::ParseIntError);

impl fmt::Display for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shelf number is wrong")
    }
}

impl std::error::Error for Outer {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[derive(Deserialize, JsonSchema)]
struct Shelf {
    number: String,
}

async fn shelf(Args(shelf): Args<Shelf>) -> Result<String> {
    let number: u8 = shelf.number.parse().map_err(Outer)?;
    Ok(format!("shelf {number}"))
}

// TOOL-21
#[tokio::test(start_paused = true)]
async fn failing_tool_returns_tool_error_with_text() {
    let server = Server::builder("test", "1")
        .tool(Tool::new("shelf", shelf))
        .tool(Tool::new("plain", async || Err::<String, _>(Error::new("try again after noon"))))
        .tool(Tool::new("none", async || None::<String>))
        .build()
        .unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        assert_eq!(text(&pipe.call("shelf", json!({"number": "7"})).await), "shelf 7");
        for (tool, arguments, expected) in [
            (
                "shelf",
                json!({"number": "x"}),
                "the shelf number is wrong: invalid digit found in string",
            ),
            ("plain", json!({}), "try again after noon"),
            ("none", json!({}), "not found"),
        ] {
            let result = pipe.call(tool, arguments).await;
            assert_eq!(result["isError"], true, "{version}: {tool}");
            assert_eq!(
                result["content"],
                json!([{"type": "text", "text": expected}]),
                "{version}: {tool}"
            );
        }
    }
}

// RPC-05, RPC-22
#[tokio::test(start_paused = true)]
async fn tool_can_return_protocol_error() {
    let custom = || {
        let mut object: ErrorObject =
            serde_json::from_value(json!({"code": 1000, "message": "closed"})).unwrap();
        object.data = Some(raw(&json!({"until": "noon"})));
        ProtocolError::Custom(object)
    };
    let server = Server::builder("test", "1")
        .tool(Tool::new("params", async || Err::<String, _>(Error::invalid_params("no such shop"))))
        .tool(Tool::new("fault", async || -> Result<String> {
            Err(ProtocolError::invalid_params("no such shop"))?
        }))
        .tool(Tool::new("custom", move || std::future::ready(Err::<String, _>(custom()))))
        .build()
        .unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        for (tool, expected) in [
            ("params", json!({"code": -32602, "message": "no such shop"})),
            ("fault", json!({"code": -32602, "message": "no such shop"})),
            ("custom", json!({"code": 1000, "message": "closed", "data": {"until": "noon"}})),
        ] {
            assert_eq!(
                pipe.error("tools/call", json!({"name": tool})).await,
                expected,
                "{version}"
            );
        }
    }
}

async fn needs_sampling(cx: Cx) -> Result<&'static str> {
    cx.require_capabilities(&json!({"sampling": {"tools": {}}}))?;
    Ok("can")
}

// META-05, RPC-24
#[tokio::test(start_paused = true)]
async fn missing_client_capability_is_named() {
    let server = Server::builder("test", "1").tool(Tool::new("t", needs_sampling)).build().unwrap();
    let cases = [
        (json!({}), false),
        (json!({"sampling": {}}), false),
        (json!({"sampling": {"context": {}}, "roots": {}}), false),
        (json!({"sampling": {"tools": {}, "context": {}}}), true),
    ];
    for version in REVISIONS {
        for (declared, enough) in &cases {
            let mut pipe = Pipe::open(&server);
            let params = match version {
                MODERN => {
                    let meta = json!({"io.modelcontextprotocol/clientCapabilities": declared});
                    with_meta(json!({"name": "t", "_meta": meta}))
                }
                _ => {
                    pipe.legacy_with(version, declared.clone()).await;
                    json!({"name": "t"})
                }
            };
            let id = pipe.send_as_is("tools/call", params).await;
            let answer = pipe.answer(id).await;
            if *enough {
                assert_eq!(text(&result(&answer)), "can", "{version}: {declared}");
                continue;
            }
            let refusal = error(&answer);
            let required = json!({"requiredCapabilities": {"sampling": {"tools": {}}}});
            let (code, data) =
                if version == MODERN { (-32021, Some(&required)) } else { (-32602, None) };
            assert_eq!(refusal["code"], code, "{version}: {declared}");
            assert_eq!(refusal.get("data"), data, "{version}: {declared}");
        }
    }
}

// RES-04, PROMPT-05, COMPL-04, SEC-10
#[tokio::test(start_paused = true)]
async fn failure_outside_tools_is_internal_error_without_details() {
    let broken = || Error::new("password is hunter2");
    let server = Server::builder("test", "1")
        .resource(Resource::new("mem://r", "r", move || {
            std::future::ready(Err::<String, _>(broken()))
        }))
        .prompt(
            Prompt::new("p", move |_: Args<Shelf>| std::future::ready(Err::<String, _>(broken())))
                .complete("number", move |_: CompletionInput| {
                    std::future::ready(Err::<Vec<String>, _>(broken()))
                }),
        )
        .custom_method("own/method", move || std::future::ready(Err::<Json<Value>, _>(broken())))
        .build()
        .unwrap();
    let reference = json!({"type": "ref/prompt", "name": "p"});
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        for (method, params) in [
            ("resources/read", json!({"uri": "mem://r"})),
            ("prompts/get", json!({"name": "p", "arguments": {"number": "1"}})),
            (
                "completion/complete",
                json!({"ref": reference, "argument": {"name": "number", "value": ""}}),
            ),
            ("own/method", json!({})),
        ] {
            let refusal = pipe.error(method, params).await;
            assert_eq!(
                refusal,
                json!({"code": -32603, "message": "internal error"}),
                "{version}: {method}"
            );
        }
    }
}

/// An extractor that panics.
struct Bomb;

impl Extract for Bomb {
    fn extract(_: &Cx) -> std::result::Result<Self, Rejection> {
        panic!("in an extractor")
    }
}

async fn after_a_while(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    panic!("after a while")
}

fn at_once() -> std::future::Ready<&'static str> {
    panic!("before there is a future")
}

fn panicking(gate: &Gate) -> Server {
    Server::builder("test", "1")
        .tool(Tool::new("first", async || -> &'static str { panic!("password is {}", "hunter2") }))
        .tool(Tool::new("value", async || -> &'static str { panic_any(7) }))
        .tool(Tool::new("later", after_a_while))
        .tool(Tool::new("sync", at_once))
        .tool(Tool::new("extract", async |_: Bomb| "x"))
        .tool(Tool::new("fine", async || "fine"))
        .resource(Resource::new("mem://r", "r", async || -> String { panic!("in a resource") }))
        .prompt(
            Prompt::new("p", async |_: Args<Shelf>| -> String { panic!("in a prompt") })
                .complete("number", async || -> Vec<String> { panic!("in a completer") }),
        )
        .prompt(Prompt::new("hidden", async || "x").visible_to(|_| panic!("in a rule")))
        .custom_method("own/method", async || -> Json<Value> { panic!("in a method") })
        .on_notification("own/notice", |_| panic!("in a notification"))
        .on_session_open(|_| panic!("in a hook"))
        .on_session_close(|_| panic!("in a hook"))
        .state(gate.clone())
        .build()
        .unwrap()
}

// RPC-15, SEC-10
#[tokio::test(start_paused = true)]
async fn panic_ends_only_its_own_call() {
    let reference = json!({"type": "ref/prompt", "name": "p"});
    let calls =
        ["first", "value", "sync", "extract"].map(|tool| ("tools/call", json!({"name": tool})));
    let others = [
        ("resources/read", json!({"uri": "mem://r"})),
        ("prompts/get", json!({"name": "p", "arguments": {"number": "1"}})),
        ("prompts/get", json!({"name": "hidden"})),
        ("prompts/list", json!({})),
        (
            "completion/complete",
            json!({"ref": reference, "argument": {"name": "number", "value": ""}}),
        ),
        ("own/method", json!({})),
    ];
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe = Pipe::speaking(&panicking(&gate), version).await;
        let running = pipe.send("tools/call", json!({"name": "later"})).await;
        gate.arrived().await;
        for (method, params) in calls.iter().chain(&others) {
            let refusal = pipe.error(method, params.clone()).await;
            assert_eq!(
                refusal,
                json!({"code": -32603, "message": "internal error"}),
                "{version}: {method} {params}"
            );
        }
        pipe.notify("own/notice", json!({})).await;
        assert_eq!(text(&pipe.call("fine", json!({})).await), "fine", "{version}");
        // A call that was already waiting fails the same way, and its ID becomes reusable.
        gate.open(1);
        assert_eq!(error(&pipe.answer(running).await)["code"], -32603, "{version}");
        assert_eq!(text(&pipe.call("fine", json!({})).await), "fine", "{version}");
    }
}

// RPC-17, RPC-19, RPC-20, RPC-22
#[tokio::test(start_paused = true)]
async fn errors_use_only_codes_of_the_version() {
    let wrong = [
        ("no/such/method", json!({})),
        ("tools/call", json!({"name": "none"})),
        ("tools/call", json!({"name": "first"})),
        ("tools/list", json!({"cursor": "none"})),
        ("resources/read", json!({"uri": "mem://none"})),
        ("resources/read", json!({})),
        ("resources/subscribe", json!({"uri": "mem://none"})),
        ("resources/templates/list", json!({"cursor": 7})),
        ("prompts/get", json!({"name": "none"})),
        ("prompts/get", json!({"name": "p"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/resource", "uri": "mem://none"}, "argument": {"name": "a", "value": ""}}),
        ),
        ("completion/complete", json!({})),
        ("logging/setLevel", json!({"level": "loud"})),
        ("subscriptions/listen", json!({})),
    ];
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&panicking(&Gate::default()), version).await;
        for (method, params) in &wrong {
            let refusal = pipe.error(method, params.clone()).await;
            let code = refusal["code"].as_i64().unwrap();
            let standard = [-32700, -32600, -32601, -32602, -32603].contains(&code);
            let legacy = version != MODERN && code == -32002;
            assert!(standard || legacy, "{version}: {method} {params}: {refusal}");
        }
    }
}
