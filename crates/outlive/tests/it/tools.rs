//! Tool arguments, results and schemas.

mod schemas; // explicit schemas, invalid schemas, results that violate their schema

use base64::{Engine, engine::general_purpose::STANDARD};
use outlive::{
    server::{
        Args, CallToolResult, ContentBlock, Cx, Error, Json, Principal, Server, State, Tool,
        extract::{Extract, RawParams, Rejection},
    },
    wire,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::pipe::{MODERN, Pipe, REVISIONS, text};

#[derive(Deserialize, JsonSchema)]
struct Order {
    /// The number of pieces.
    count: u8,
    #[serde(default)]
    note: Option<String>,
    items: Vec<Item>,
}

#[derive(Deserialize, JsonSchema)]
struct Item {
    name: String,
}

async fn order(Args(order): Args<Order>) -> String {
    let names: Vec<_> = order.items.iter().map(|item| item.name.as_str()).collect();
    format!(
        "{} x {} ({})",
        order.count,
        names.join("+"),
        order.note.as_deref().unwrap_or("no note")
    )
}

fn server(tools: impl IntoIterator<Item = Tool>) -> Server {
    tools
        .into_iter()
        .fold(Server::builder("test", "1"), |builder, tool| builder.tool(tool))
        .build()
        .unwrap()
}

/// Returns the build error for a tool.
#[track_caller]
fn refused(tool: Tool) -> String {
    Server::builder("test", "1").tool(tool).build().unwrap_err().to_string()
}

async fn listed(server: &Server, version: &str) -> Vec<Value> {
    let mut pipe = Pipe::speaking(server, version).await;
    pipe.result("tools/list", json!({})).await["tools"].as_array().unwrap().clone()
}

// TOOL-12, TOOL-13
#[tokio::test(start_paused = true)]
async fn tool_arguments_are_deserialized_into_handler_type() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server([Tool::new("order", order)]), version).await;
        let result =
            pipe.call("order", json!({"items": [{"name": "a"}, {"name": "b"}], "count": 2})).await;
        assert_eq!(
            result["content"],
            json!([{"type": "text", "text": "2 x a+b (no note)"}]),
            "{version}"
        );
        assert_eq!(result.get("isError"), None, "{version}");
    }
}

// TOOL-21, TOOL-24, C-21
#[tokio::test(start_paused = true)]
async fn arguments_violating_schema_are_tool_error_with_path() {
    let cases = [
        (json!({}), "`arguments` lacks the required properties `count`, `items`"),
        (json!({"count": 1}), "`arguments` lacks the required property `items`"),
        (json!({"count": "1", "items": []}), "`/count` must be an integer, not \"1\""),
        (json!({"count": 256, "items": []}), "`/count` must be at most 255, not 256"),
        (json!({"count": -1, "items": []}), "`/count` must be at least 0, not -1"),
        (json!({"count": 1, "items": {}}), "`/items` must be an array, not {}"),
        (
            json!({"count": 1, "items": [{"name": "a"}, {}]}),
            "`/items/1` lacks the required property `name`",
        ),
        (json!({"count": 1, "items": [{"name": 5}]}), "`/items/0/name` must be a string, not 5"),
        (json!({"count": 1, "note": 5, "items": []}), "`/note` must be null or a string, not 5"),
    ];
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server([Tool::new("order", order)]), version).await;
        for (arguments, expected) in &cases {
            let result = pipe.call("order", arguments.clone()).await;
            assert_eq!(result["isError"], true, "{version}: {arguments}");
            assert_eq!(text(&result), *expected, "{version}: {arguments}");
        }
    }
}

// TOOL-20
#[tokio::test(start_paused = true)]
async fn malformed_call_parameters_are_invalid_params() {
    let cases = [
        (json!({}), "`params.name` is missing"),
        (json!({"name": 5}), "`params.name` must be a string"),
        (json!({"name": null}), "`params.name` must be a string"),
        (json!({"name": "order", "arguments": []}), "`params.arguments` must be an object"),
        (json!({"name": "order", "arguments": "{}"}), "`params.arguments` must be an object"),
        (json!({"name": "order", "arguments": 5}), "`params.arguments` must be an object"),
        (json!({"name": "order", "arguments": null}), "`params.arguments` must be an object"),
    ];
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server([Tool::new("order", order)]), version).await;
        for (params, expected) in &cases {
            let refusal = pipe.error("tools/call", params.clone()).await;
            assert_eq!(
                refusal,
                json!({"code": -32602, "message": expected}),
                "{version}: {params}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn tool_name_with_lone_surrogate_is_invalid_params() {
    let mut pipe = Pipe::speaking(&server([Tool::new("order", order)]), "2025-11-25").await;
    for name in [r#""\ud800""#, r#""\udc00x""#] {
        let params = format!(r#"{{"name":{name},"arguments":{{}}}}"#);
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{params}}}\n"
        );
        pipe.send_raw(line.as_bytes()).await;
        assert_eq!(pipe.answer(1).await["error"]["code"], -32602);
    }
    assert_eq!(pipe.call("order", json!({})).await["isError"], true);
}

// TOOL-19
#[tokio::test(start_paused = true)]
async fn unknown_tool_error_suggests_similar_name() {
    let tools = ["search", "add", "multiply"].map(|name| Tool::new(name, async || "x"));
    let server = server(tools);
    let cases = [
        ("serach", "unknown tool `serach`; did you mean `search`?"),
        ("Search", "unknown tool `Search`; did you mean `search`?"),
        ("ad", "unknown tool `ad`; did you mean `add`?"),
        ("delete", "unknown tool `delete`"),
        ("", "unknown tool ``"),
    ];
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        for (name, expected) in cases {
            let refusal = pipe.error("tools/call", json!({"name": name})).await;
            assert_eq!(refusal, json!({"code": -32602, "message": expected}), "{version}");
        }
    }
}

// TOOL-06, RPC-16
#[tokio::test(start_paused = true)]
async fn tool_without_arguments_declares_and_accepts_none() {
    for version in REVISIONS {
        let server = server([Tool::new("now", async || "now")]);
        let tools = listed(&server, version).await;
        let nothing = json!({"type": "object", "additionalProperties": false});
        assert_eq!(tools, [json!({"name": "now", "inputSchema": nothing})], "{version}");
        let mut pipe = Pipe::speaking(&server, version).await;
        assert_eq!(text(&pipe.result("tools/call", json!({"name": "now"})).await), "now");
        assert_eq!(text(&pipe.call("now", json!({})).await), "now");
        let result = pipe.call("now", json!({"zone": "UTC"})).await;
        assert_eq!(result["isError"], true, "{version}: {result}");
        assert_eq!(
            text(&result),
            "`arguments` must have no members, but one is \"UTC\"",
            "{version}"
        );
    }
    let mut pipe = Pipe::speaking(&Server::builder("none", "1").build().unwrap(), MODERN).await;
    for method in ["tools/list", "tools/call"] {
        assert_eq!(pipe.error(method, json!({"name": "now"})).await["code"], -32601);
    }
}

// TOOL-05
#[tokio::test(start_paused = true)]
async fn listed_tool_has_declared_members() {
    let tool = Tool::new("order", order)
        .title("Order")
        .description("Orders things.")
        .read_only()
        .idempotent()
        .destructive(false)
        .open_world(true)
        .icon(
            wire::Icon::new("https://example.com/i.png")
                .with_mime_type("image/png")
                .with_sizes(["48x48"]),
        )
        .meta(wire::Meta::default().with("com.example/team", "shop"));
    let mut listed = listed(&server([tool]), MODERN).await;
    let schema = listed[0].as_object_mut().unwrap().remove("inputSchema").unwrap();
    let expected = json!({
        "name": "order",
        "title": "Order",
        "description": "Orders things.",
        "annotations": {"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true},
        "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}],
        "_meta": {"com.example/team": "shop"},
    });
    assert_eq!(listed, [expected]);
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["count", "items"]));
    assert_eq!(schema["properties"]["count"]["description"], "The number of pieces.");
}

// TOOL-13, TOOL-26
#[tokio::test(start_paused = true)]
async fn tool_handler_return_types_become_content() {
    let png = STANDARD.encode([0x89, b'P']);
    let image = ContentBlock::image_base64(png.clone(), "image/png");
    let mixed = vec![
        ContentBlock::text("t").with_annotations(
            wire::Annotations::new().with_audience([wire::Role::User]).with_priority(0.5),
        ),
        ContentBlock::audio_base64("UklGRg==", "audio/wav"),
        ContentBlock::resource_text("mem://t", "text"),
        ContentBlock::resource_blob("mem://b", [0, 1, 2])
            .with_meta(wire::Meta::default().with("com.example/k", 1)),
    ];
    let link = wire::Resource::new("mem://x", "x").with_mime_type("text/plain").with_size(3);
    let result =
        CallToolResult::text("own").with_meta(wire::Meta::default().with("com.example/own", true));
    let mut pipe = Pipe::open(&server([
        Tool::new("string", async || "s".to_owned()),
        Tool::new("nothing", async || ()),
        Tool::new("block", move || std::future::ready(image.clone())),
        Tool::new("blocks", move || std::future::ready(mixed.clone())),
        Tool::new("link", move || std::future::ready(link.clone())),
        Tool::new("result", move || std::future::ready(result.clone())),
        Tool::new("some", async || Some("there")),
        Tool::new("ok", async || Ok::<_, Error>("fine")),
    ]));
    let mixed = json!([
        {"type": "text", "text": "t", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "mem://t", "text": "text"}},
        {"type": "resource", "resource": {"uri": "mem://b", "blob": "AAEC"}, "_meta": {"com.example/k": 1}},
    ]);
    for (tool, expected) in [
        ("string", json!([{"type": "text", "text": "s"}])),
        ("nothing", json!([])),
        ("block", json!([{"type": "image", "data": png, "mimeType": "image/png"}])),
        ("blocks", mixed),
        (
            "link",
            json!([{"type": "resource_link", "uri": "mem://x", "name": "x", "mimeType": "text/plain", "size": 3}]),
        ),
        ("result", json!([{"type": "text", "text": "own"}])),
        ("some", json!([{"type": "text", "text": "there"}])),
        ("ok", json!([{"type": "text", "text": "fine"}])),
    ] {
        let result = pipe.call(tool, json!({})).await;
        assert_eq!(result["content"], expected, "{tool}");
        assert_eq!(result.get("isError"), None, "{tool}");
        if tool == "result" {
            assert_eq!(
                result["_meta"]["com.example/own"], true,
                "its own `_meta` is kept beside ours"
            );
            assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "test");
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Weather {
    celsius: f64,
    windy: bool,
}

// TOOL-07, TOOL-14, TOOL-16
#[tokio::test(start_paused = true)]
async fn structured_content_has_schema_and_text() {
    let server =
        server([Tool::new("weather", async || Json(Weather { celsius: 21.5, windy: false }))]);
    for version in ["2025-06-18", "2025-11-25", MODERN] {
        let schema = &listed(&server, version).await[0]["outputSchema"];
        assert_eq!(schema["type"], "object", "{version}");
        assert_eq!(schema["required"], json!(["celsius", "windy"]), "{version}");
        let mut pipe = Pipe::speaking(&server, version).await;
        let result = pipe.call("weather", json!({})).await;
        let weather = json!({"celsius": 21.5, "windy": false});
        assert_eq!(result["structuredContent"], weather, "{version}");
        assert_eq!(serde_json::from_str::<Value>(text(&result)).unwrap(), weather, "{version}");
    }
}

// TOOL-07, TOOL-15, TOOL-17, C-20
#[tokio::test(start_paused = true)]
async fn structured_content_other_than_object_is_text_before_2026_07_28() {
    let server = server([
        Tool::new("number", async || Json(5)),
        Tool::new("list", async || Json(vec!["a", "b"])),
        Tool::new("nothing", async || Json(None::<u8>)),
        Tool::new("object", async || Json(Weather { celsius: 0.0, windy: true })),
    ]);
    for version in REVISIONS {
        let tools = listed(&server, version).await;
        let mut pipe = Pipe::speaking(&server, version).await;
        for (at, (tool, value, is_object)) in [
            ("number", json!(5), false),
            ("list", json!(["a", "b"]), false),
            ("nothing", json!(null), false),
            ("object", json!({"celsius": 0.0, "windy": true}), true),
        ]
        .into_iter()
        .enumerate()
        {
            let shown = version == MODERN || is_object && version >= "2025-06-18";
            let result = pipe.call(tool, json!({})).await;
            assert_eq!(
                result.get("structuredContent"),
                shown.then_some(&value),
                "{version}: {tool}"
            );
            assert_eq!(
                serde_json::from_str::<Value>(text(&result)).unwrap(),
                value,
                "{version}: {tool}"
            );
            assert_eq!(tools[at].get("outputSchema").is_some(), shown, "{version}: {tool}");
            assert_eq!(result.get("isError"), None, "{version}: {tool}");
        }
    }
}

// STDIO-01, JSCH-09
#[tokio::test(start_paused = true)]
async fn multi_line_json_is_sent_on_one_line() {
    let pretty = "{\n  \"type\": \"object\",\r\n  \"x-own\": \"a\\nb\"\n}";
    let pretty: wire::RawJson = serde_json::from_str(pretty).unwrap();
    let value: wire::RawJson = serde_json::from_str("[\n1,\r2\n]").unwrap();
    let result = CallToolResult::text("two\nlines").with_structured_content(value);
    let tool = Tool::new("t", move || std::future::ready(result.clone())).input_schema(pretty);
    let server = server([tool]);
    for version in REVISIONS {
        let tools = listed(&server, version).await;
        assert_eq!(
            tools[0]["inputSchema"],
            json!({"type": "object", "x-own": "a\nb"}),
            "{version}"
        );
        let mut pipe = Pipe::speaking(&server, version).await;
        assert_eq!(text(&pipe.call("t", json!({})).await), "two\nlines", "{version}");
    }
}

#[derive(Debug)]
struct Badge(String);

impl Extract for Badge {
    fn extract(cx: &Cx) -> Result<Self, Rejection> {
        let badge =
            cx.meta().and_then(|meta| meta.get("com.example/badge")?.as_str().map(str::to_owned));
        badge
            .map(Badge)
            .ok_or_else(|| outlive::server::ProtocolError::invalid_params("show your badge").into())
    }
}

// META-16
#[tokio::test(start_paused = true)]
async fn handler_receives_every_extractor_it_names() {
    struct Greeting {
        word: &'static str,
    }
    let all = async |Args(item): Args<Item>,
                     greeting: State<Greeting>,
                     badge: Badge,
                     who: Principal,
                     RawParams(raw): RawParams,
                     cx: Cx| {
        let raw: Value = serde_json::from_str(raw.get()).unwrap();
        format!(
            "{} {} {} {who} {} {}",
            greeting.word,
            item.name,
            badge.0,
            raw["name"],
            cx.call().method_name()
        )
    };
    let server = Server::builder("test", "1")
        .tool(Tool::new("all", all))
        .state(Greeting { word: "hi" })
        .build()
        .unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        let arguments = json!({"name": "x"});
        let params =
            json!({"name": "all", "arguments": arguments, "_meta": {"com.example/badge": "b7"}});
        let result = pipe.result("tools/call", params).await;
        assert_eq!(text(&result), "hi x b7 local \"all\" tools/call", "{version}");
        let refusal =
            pipe.error("tools/call", json!({"name": "all", "arguments": arguments})).await;
        assert_eq!(refusal, json!({"code": -32602, "message": "show your badge"}), "{version}");
    }
}

// TOOL-08
#[tokio::test(start_paused = true)]
async fn tool_name_must_be_unique_and_not_empty() {
    assert_eq!(refused(Tool::new("", async || "x")), "tool ``: its name is empty");
    let twice = ["a", "a"].map(|name| Tool::new(name, async || "x"));
    let twice =
        twice.into_iter().fold(Server::builder("test", "1"), |builder, tool| builder.tool(tool));
    assert!(
        twice
            .build()
            .unwrap_err()
            .to_string()
            .starts_with("tool `a`: this name is already registered")
    );
    for name in ["a.b-c_D9", "with space", "a/b", "é", &"n".repeat(200)] {
        let mut pipe = Pipe::open(&server([Tool::new(name, async || "x")]));
        assert_eq!(text(&pipe.call(name, json!({})).await), "x");
    }
}

#[test]
fn tool_with_missing_state_fails_build() {
    let refused = refused(Tool::new("t", async |_: State<Item>| "x"));
    assert!(
        refused.contains("State<") && refused.contains("Item") && refused.contains("`.state(…)`"),
        "{refused}"
    );
}
