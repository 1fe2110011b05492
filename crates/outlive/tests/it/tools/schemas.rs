//! Explicit schemas, schemas that fail the build, and results that violate their schema.

use outlive::server::{Args, CallToolResult, Error, Json, Server, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{listed, refused, server};
use crate::support::pipe::{MODERN, Pipe, REVISIONS, raw, text};

fn with_input(schema: &Value) -> Tool {
    Tool::new("t", async || "ran").input_schema(raw(schema))
}

/// A tool with an explicit output schema that returns this structured content.
fn with_output(schema: &Value, content: Option<&Value>) -> Tool {
    let mut result = CallToolResult::text("text");
    result.structured_content = content.map(raw);
    Tool::new("t", move || std::future::ready(result.clone())).output_schema(raw(schema))
}

// TOOL-24, JSCH-01, JSCH-07, JSCH-09
#[tokio::test(start_paused = true)]
async fn explicit_input_schema_is_sent_unchanged_and_enforced() {
    let schema = json!({
        "x-own": {"kept": true},
        "type": "object",
        "$defs": {"even": {"type": "integer", "multipleOf": 2}},
        "properties": {
            "n": {"$ref": "#/$defs/even"},
            "zip": {"type": "string", "pattern": "^[0-9]{5}$"},
            "side": {"oneOf": [{"const": "left"}, {"const": "right"}]},
        },
        "dependentRequired": {"zip": ["n"]},
        "additionalProperties": false,
    });
    let server = server([with_input(&schema)]);
    for version in REVISIONS {
        let tools = listed(&server, version).await;
        assert_eq!(tools[0]["inputSchema"].to_string(), schema.to_string(), "{version}");
        let mut pipe = Pipe::speaking(&server, version).await;
        for arguments in [json!({}), json!({"n": 4, "zip": "01234", "side": "left"})] {
            assert_eq!(text(&pipe.call("t", arguments).await), "ran", "{version}");
        }
        for (arguments, place) in [
            (json!({"n": 3}), "`/n`"),
            (json!({"n": 4, "zip": "1234"}), "`/zip`"),
            (json!({"side": "up"}), "`/side`"),
            (json!({"zip": "01234"}), "`n`"),
            (json!({"other": 1}), "`other`"),
        ] {
            let result = pipe.call("t", arguments.clone()).await;
            assert_eq!(result["isError"], true, "{version}: {arguments}");
            assert!(text(&result).contains(place), "{version}: {arguments}: {result}");
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    n: u8,
}

#[tokio::test(start_paused = true)]
async fn handler_type_is_checked_besides_explicit_schema() {
    let tool = Tool::new("t", async |Args(count): Args<Count>| count.n.to_string());
    let tool = tool
        .input_schema(raw(&json!({"type": "object", "properties": {"n": {"type": "integer"}}})));
    let mut pipe = Pipe::open(&server([tool]));
    assert_eq!(text(&pipe.call("t", json!({"n": 7})).await), "7");
    for (arguments, said) in
        [(json!({"n": "7"}), "`/n`"), (json!({"n": 300}), "`/n`"), (json!({}), "`n`")]
    {
        let result = pipe.call("t", arguments).await;
        assert_eq!(result["isError"], true);
        assert!(text(&result).contains(said), "{result}");
    }
}

// TOOL-14
#[tokio::test(start_paused = true)]
async fn result_violating_output_schema_is_tool_error() {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let cases = [
        (Some(json!({"n": 1})), None),
        (Some(json!({"n": 1, "more": []})), None),
        (Some(json!({"n": "1"})), Some("`/n` must be an integer")),
        (Some(json!({})), Some("lacks the required property `n`")),
        (Some(json!([1])), Some("must be an object")),
        (Some(json!(null)), Some("must be an object")),
        (None, Some("must be an object")),
    ];
    for (content, complaint) in cases {
        for version in REVISIONS {
            let server = server([with_output(&schema, content.as_ref())]);
            let mut pipe = Pipe::speaking(&server, version).await;
            let result = pipe.call("t", json!({})).await;
            match complaint {
                None => assert_eq!(result.get("isError"), None, "{version}: {content:?}: {result}"),
                Some(complaint) => {
                    assert_eq!(result["isError"], true, "{version}: {content:?}");
                    assert_eq!(result.get("structuredContent"), None, "{version}: {content:?}");
                    assert!(text(&result).contains(complaint), "{version}: {result}");
                }
            }
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct Percent {
    #[schemars(range(max = 100))]
    value: u8,
}

// TOOL-14
#[tokio::test(start_paused = true)]
async fn typed_result_is_checked_against_schema_bounds() {
    let percent = async |Args(count): Args<Count>| Json(Percent { value: count.n });
    let mut pipe = Pipe::open(&server([Tool::new("percent", percent)]));
    let result = pipe.call("percent", json!({"n": 100})).await;
    assert_eq!(result["structuredContent"], json!({"value": 100}));
    let result = pipe.call("percent", json!({"n": 101})).await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("`/value` must be at most 100, not 101"), "{result}");
}

// TOOL-18
#[tokio::test(start_paused = true)]
async fn tool_error_is_exempt_from_output_schema() {
    let schema = raw(&json!({"type": "object", "required": ["n"]}));
    let failed =
        || CallToolResult::error("no luck").with_structured_content(raw(&json!({"why": "rain"})));
    let server = server([
        Tool::new("own", move || std::future::ready(failed())).output_schema(schema),
        Tool::new("err", async || Err::<Json<Percent>, _>(Error::new("no luck"))),
    ]);
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        for tool in ["own", "err"] {
            let result = pipe.call(tool, json!({})).await;
            assert_eq!(result["isError"], true, "{version}: {tool}");
            assert_eq!(text(&result), "no luck", "{version}: {tool}");
        }
        if version == MODERN {
            assert_eq!(
                pipe.call("own", json!({})).await["structuredContent"],
                json!({"why": "rain"})
            );
        }
    }
}

// JSCH-04, JSCH-05, JSCH-07
#[tokio::test(start_paused = true)]
async fn external_schema_reference_fails_build() {
    let outside = [
        "https://example.com/schema.json",
        "https://json-schema.org/draft/2020-12/schema",
        "http://127.0.0.1:9/x",
        "file:///etc/hostname",
        "other.json#/a",
        "#/$defs/missing",
    ];
    for target in outside {
        for keyword in ["$ref", "$dynamicRef"] {
            let schema = json!({"type": "object", "properties": {"a": {keyword: target}}});
            let why = refused(with_input(&schema));
            assert!(why.starts_with("tool `t`: "), "{why}");
            let why = refused(with_output(&schema, None));
            assert!(why.starts_with("tool `t`: "), "{why}");
        }
    }
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/s"}}});
    let why = refused(with_input(&schema));
    assert!(why.contains("`https://example.com/s`") && why.contains("#/properties/a"), "{why}");
    for inside in ["#/$defs/a", "#a"] {
        let schema = json!({
            "type": "object",
            "$defs": {"a": {"$anchor": "a", "type": "integer"}},
            "properties": {"a": {"$ref": inside}},
        });
        let mut pipe = Pipe::open(&server([with_input(&schema)]));
        assert_eq!(text(&pipe.call("t", json!({"a": 1})).await), "ran", "{inside}");
        assert_eq!(pipe.call("t", json!({"a": "1"})).await["isError"], true, "{inside}");
    }
}

// JSCH-01, JSCH-02, JSCH-03
#[tokio::test(start_paused = true)]
async fn schema_of_known_dialect_is_read_and_unknown_fails_build() {
    // In draft-07 `items` may be an array (a tuple); in 2020-12 that is an error.
    let tuple = json!({"type": "object", "properties": {"a": {"items": [{"type": "integer"}]}}});
    assert!(refused(with_input(&tuple)).contains("invalid"));
    let mut draft_07 = tuple.clone();
    draft_07["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    let mut pipe = Pipe::open(&server([with_input(&draft_07)]));
    assert_eq!(text(&pipe.call("t", json!({"a": [1, "x"]})).await), "ran");
    assert_eq!(pipe.call("t", json!({"a": ["x"]})).await["isError"], true);

    let why =
        refused(with_input(&json!({"$schema": "https://example.com/mine", "type": "object"})));
    assert!(
        why.contains("unknown dialect `https://example.com/mine`") && why.contains("2020-12"),
        "{why}"
    );
    for broken in [
        json!({"type": "objct"}),
        json!({"type": "object", "required": "a"}),
        json!({"type": "object", "minProperties": -1}),
    ] {
        assert!(refused(with_input(&broken)).starts_with("tool `t`: "), "{broken}");
    }
}

// TOOL-06
#[test]
fn input_schema_other_than_object_fails_build() {
    for schema in [
        json!(true),
        json!({}),
        json!({"type": "array"}),
        json!({"type": ["object", "null"]}),
        json!(null),
        json!("object"),
    ] {
        assert!(refused(with_input(&schema)).starts_with("tool `t`: "), "{schema}");
    }
    let list = refused(Tool::new("t", async |Args(_): Args<Vec<String>>| "x"));
    assert!(list.contains("array") && list.contains("field of a struct"), "{list}");
}

// TOOL-06, TOOL-07
#[tokio::test(start_paused = true)]
async fn untyped_json_value_has_empty_schema() {
    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Any {
        any: Value,
        list: Vec<Value>,
    }
    let any = async |Args(any): Args<Any>| Json(any);
    let server =
        server([Tool::new("any", any), Tool::new("value", async || Json(json!([1, "x"])))]);
    for version in REVISIONS {
        let tools = listed(&server, version).await;
        let properties = json!({"any": {}, "list": {"type": "array", "items": {}}});
        assert_eq!(tools[0]["inputSchema"]["properties"], properties, "{version}");
        if version >= "2025-06-18" {
            assert_eq!(tools[0]["outputSchema"]["properties"], properties, "{version}");
        }
        assert_eq!(
            tools[1].get("outputSchema"),
            (version == MODERN).then_some(&json!({})),
            "{version}"
        );
        let mut pipe = Pipe::speaking(&server, version).await;
        for value in [json!(null), json!(1.5), json!({"a": []})] {
            let result = pipe.call("any", json!({"any": value, "list": [value]})).await;
            assert_eq!(result.get("isError"), None, "{version}: {result}");
        }
        let result = pipe.call("any", json!({"list": []})).await;
        assert_eq!(text(&result), "`arguments` lacks the required property `any`", "{version}");
    }
    let why = refused(with_output(&json!(true), None));
    assert_eq!(why, "tool `t`: its output schema is not an object; write `{}` for any value");
}

// JSCH-06
#[test]
fn schema_over_size_limits_fails_build() {
    let mut deep = json!({"type": "object"});
    for _ in 0..300 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let why = refused(with_input(&deep));
    assert!(why.contains("deeper") || why.contains("recursion"), "{why}");
    let many: serde_json::Map<String, Value> =
        (0..20_000).map(|n| (format!("p{n}"), json!({"type": "integer"}))).collect();
    let why = refused(with_input(&json!({"type": "object", "properties": many})));
    assert!(why.contains("subschemas"), "{why}");
}

// HTTP26-53, HTTP26-67
#[tokio::test(start_paused = true)]
async fn invalid_header_annotation_fails_build() {
    let on = |property: Value| json!({"type": "object", "properties": {"a": property}});
    let text = |name: Value| json!({"type": "string", "x-mcp-header": name});
    let invalid = [
        on(text(json!(""))),
        on(text(json!("two words"))),
        on(text(json!("co:lon"))),
        on(text(json!("Zürich"))),
        on(text(json!(7))),
        on(json!({"type": "number", "x-mcp-header": "A"})),
        on(json!({"type": "object", "x-mcp-header": "A"})),
        on(json!({"type": ["string", "null"], "x-mcp-header": "A"})),
        on(json!({"x-mcp-header": "A"})),
        on(json!({"type": "array", "items": text(json!("A"))})),
        on(json!({"oneOf": [text(json!("A"))]})),
        on(json!({"if": text(json!("A"))})),
        on(json!({"type": "object", "additionalProperties": text(json!("A"))})),
        json!({"type": "object", "x-mcp-header": "A"}),
        json!({"type": "object", "$defs": {"a": text(json!("A"))}, "properties": {"a": {"$ref": "#/$defs/a"}}}),
        json!({"type": "object", "properties": {"a": text(json!("Same")), "b": text(json!("sAME"))}}),
    ];
    for schema in invalid {
        let why = refused(with_input(&schema));
        assert!(why.contains("x-mcp-header"), "{schema}: {why}");
    }
    let nested = json!({"type": "object", "properties": {"in": on(json!({"type": "integer", "x-mcp-header": "Deep"}))}});
    let valid =
        [on(text(json!("Zone"))), on(json!({"type": "boolean", "x-mcp-header": "A"})), nested];
    for schema in valid {
        // A pipe has no headers, so the call needs none.
        let mut pipe = Pipe::open(&server([with_input(&schema)]));
        let result = pipe.call("t", json!({"a": if schema.to_string().contains("boolean") { json!(true) } else { json!("x") }})).await;
        assert_eq!(super::text(&result), "ran", "{schema}");
    }
}

#[test]
fn build_error_names_rejected_tool() {
    let builder = Server::builder("test", "1").tool(Tool::new("fine", async || "x"));
    let why = builder.tool(with_input(&json!({"type": "array"}))).build().unwrap_err();
    assert!(why.to_string().starts_with("tool `t`: "), "{why}");
}
