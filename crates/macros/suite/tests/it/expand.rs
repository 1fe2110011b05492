//! Macro-made tools, resources and prompts behave like those that are built by hand.

use std::sync::Arc;

use outlive::{
    prompt, resource,
    server::{Args, Cx, Json, Server, ServerBuilder, State, layer::Session},
    tool,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Builds a server and asks it one thing in the modern era; returns the result.
async fn ask(server: ServerBuilder, method: &str, params: Value) -> Value {
    ask_with(server, method, params, json!({})).await
}

/// As [`ask`], by a client that has these capabilities.
async fn ask_with(
    server: ServerBuilder,
    method: &str,
    params: Value,
    capabilities: Value,
) -> Value {
    let server = server.build().expect("the server can be built");
    let connection = server.connect_in_memory();
    let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let mut stream = BufReader::new(connection.stream);
    stream.write_all(format!("{request}\n").as_bytes()).await.expect("the server reads");
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("the server answers");
    let mut answer: Value = serde_json::from_str(&line).expect("the answer is JSON");
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

async fn call(server: ServerBuilder, name: &str, arguments: Value) -> Value {
    ask(server, "tools/call", json!({"name": name, "arguments": arguments})).await
}

/// The only tool of the server, as it is listed.
async fn listed(tool: outlive::server::Tool) -> Value {
    ask(server().tool(tool), "tools/list", json!({})).await["tools"][0].take()
}

fn server() -> ServerBuilder {
    Server::builder("macros", "1.0.0")
}

/// Adds two numbers.
///
/// Nothing is rounded.
#[tool(title = "Addition", read_only, idempotent, destructive = false, open_world = false)]
async fn add(
    /// The first number.
    a: i64,
    b: i64,
) -> String {
    (a + b).to_string()
}

#[tokio::test]
async fn a_tool_is_listed_with_what_its_function_says() {
    let expected = json!({
        "name": "add",
        "title": "Addition",
        "description": "Adds two numbers.\n\nNothing is rounded.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "format": "int64", "description": "The first number."},
                "b": {"type": "integer", "format": "int64"},
            },
            "required": ["a", "b"],
        },
        "annotations": {
            "readOnlyHint": true,
            "idempotentHint": true,
            "destructiveHint": false,
            "openWorldHint": false,
        },
    });
    assert_eq!(listed(add()).await, expected);
}

#[tokio::test]
async fn a_tool_is_called_with_its_arguments() {
    let result = call(server().tool(add()), "add", json!({"a": 2, "b": 3})).await;
    assert_eq!(result["content"][0]["text"], "5");
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_explained_to_the_model() {
    let result = call(server().tool(add()), "add", json!({"a": 2, "b": "three"})).await;
    assert_eq!(result["isError"], true);
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains('b') && text.contains("integer"), "{text}");
}

#[tool(task = "auto")]
async fn nap(seconds: u64) -> &'static str {
    tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
    "rested"
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_long_becomes_a_task_if_the_tool_says_auto() {
    let tasks = || server().tasks(outlive::server::tasks::TaskConfig::in_memory()).tool(nap());
    for (seconds, kind) in [(1, "complete"), (3, "task")] {
        let params = json!({"name": "nap", "arguments": {"seconds": seconds}});
        let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let result = ask_with(tasks(), "tools/call", params, capabilities).await;
        assert_eq!(result["resultType"], kind, "{result}");
    }
    assert!(server().tool(nap()).build().is_err(), "a server without tasks refuses it");
}

struct Greeting(&'static str);

mod visible {
    use super::{Cx, Greeting, Session, State};

    /// Everything a parameter can be.
    #[outlive::tool(name = "greet.all", description = concat!("Greets", " people"))]
    pub(super) async fn greet(
        /// Not for clients.
        greeting: State<Greeting>,
        mut name: String,
        cx: Cx,
        #[serde(default = "one", rename = "howOften")]
        #[schemars(range(min = 1, max = 3))]
        how_often: usize,
        #[header("Region")] _region: Option<String>,
        r#type: Option<bool>,
        #[extract] session: Option<super::Arc<Session>>,
    ) -> Result<super::Json<Vec<String>>, outlive::server::Error> {
        assert!(!cx.is_cancelled() && session.is_none());
        name.push_str(if r#type == Some(true) { "!" } else { "." });
        Ok(super::Json(vec![format!("{} {name}", greeting.0); how_often]))
    }

    fn one() -> usize {
        1
    }
}

#[tokio::test]
async fn extractors_and_arguments_may_be_mixed() {
    let server = || server().state(Greeting("Hello")).tool(visible::greet());
    let result =
        call(server(), "greet.all", json!({"name": "Ada", "howOften": 2, "type": true})).await;
    assert_eq!(result["structuredContent"], json!(["Hello Ada!", "Hello Ada!"]));
    let result = call(server(), "greet.all", json!({"name": "Ada"})).await;
    assert_eq!(result["structuredContent"], json!(["Hello Ada."]));
    let result = call(server(), "greet.all", json!({"name": "Ada", "howOften": 4})).await;
    assert_eq!(result["isError"], true, "attributes of `schemars` are kept");
}

#[tokio::test]
async fn attributes_of_parameters_are_those_of_fields() {
    let server = server().state(Greeting("Hello")).tool(visible::greet());
    let listed = ask(server, "tools/list", json!({})).await["tools"][0].take();
    assert_eq!(listed["name"], "greet.all");
    assert_eq!(listed["description"], "Greets people");
    let input = &listed["inputSchema"];
    assert_eq!(input["required"], json!(["name"]));
    let names: Vec<_> = input["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["name", "howOften", "region", "type"]);
    assert_eq!(input["properties"]["region"], json!({"type": "string", "x-mcp-header": "Region"}));
    assert_eq!(input["properties"]["howOften"]["maximum"], 3);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    text: String,
}

#[tool]
async fn whole(args: Query) -> String {
    args.text
}

#[tool]
async fn taken_apart(Args(Query { text }): Args<Query>) -> String {
    text
}

#[tokio::test]
async fn all_arguments_may_be_of_one_type() {
    let arguments = json!({"text": "rust"});
    let result = call(server().tool(whole()), "whole", arguments.clone()).await;
    assert_eq!(result["content"][0]["text"], "rust");
    let result = call(server().tool(taken_apart()), "taken_apart", arguments).await;
    assert_eq!(result["content"][0]["text"], "rust");
}

#[tool]
async fn nothing() {}

// The lint is about the parameter as it was written, and so is the attribute.
#[tool]
#[expect(unused_variables, reason = "attributes of the function are kept")]
async fn ignores(first: bool, #[cfg(false)] never: Missing) {}

#[tokio::test]
async fn a_tool_may_have_no_arguments_and_no_description() {
    let expected = json!({"name": "nothing", "inputSchema": {"type": "object", "additionalProperties": false}});
    assert_eq!(listed(nothing()).await, expected);
}

#[tokio::test]
async fn a_parameter_may_depend_on_the_configuration() {
    let input = listed(ignores()).await["inputSchema"].take();
    assert_eq!(input["required"], json!(["first"]));
}

/// The settings.
#[resource("config://app", title = "Settings", mime_type = "application/json")]
async fn config(greeting: State<Greeting>) -> &'static str {
    greeting.0
}

/// A user.
#[resource("users://{id}{?fields}", name = "user")]
async fn user_by_id(id: u64, fields: Option<String>) -> Option<String> {
    (id == 7).then(|| format!("user {id}: {}", fields.as_deref().unwrap_or("all")))
}

#[tokio::test]
async fn a_resource_has_one_uri() {
    let server = || server().state(Greeting("{}")).resource(config());
    let listed = ask(server(), "resources/list", json!({})).await["resources"].take();
    let expected = json!([{
        "uri": "config://app",
        "name": "config",
        "title": "Settings",
        "description": "The settings.",
        "mimeType": "application/json",
    }]);
    assert_eq!(listed, expected);
    let read = ask(server(), "resources/read", json!({"uri": "config://app"})).await;
    let expected = json!([{"uri": "config://app", "mimeType": "application/json", "text": "{}"}]);
    assert_eq!(read["contents"], expected);
}

#[tokio::test]
async fn a_template_fills_parameters_from_the_uri() {
    let server = || server().resource_template(user_by_id());
    let listed =
        ask(server(), "resources/templates/list", json!({})).await["resourceTemplates"].take();
    let expected =
        json!([{"uriTemplate": "users://{id}{?fields}", "name": "user", "description": "A user."}]);
    assert_eq!(listed, expected);
    let read = ask(server(), "resources/read", json!({"uri": "users://7"})).await;
    assert_eq!(read["contents"][0]["text"], "user 7: all");
    let read = ask(server(), "resources/read", json!({"uri": "users://7?fields=name"})).await;
    assert_eq!(read["contents"][0]["text"], "user 7: name");
}

/// Asks for a review.
#[prompt(title = "Review")]
async fn review(
    /// The code.
    code: String,
    lines: Option<u32>,
) -> String {
    format!("Review {} lines of {code}", lines.unwrap_or(1))
}

#[tokio::test]
async fn a_prompt_takes_its_arguments_from_texts() {
    let server = || server().prompt(review());
    let listed = ask(server(), "prompts/list", json!({})).await["prompts"].take();
    let expected = json!([{
        "name": "review",
        "title": "Review",
        "description": "Asks for a review.",
        "arguments": [
            {"name": "code", "description": "The code.", "required": true},
            {"name": "lines", "required": false},
        ],
    }]);
    assert_eq!(listed, expected);
    let arguments = json!({"code": "main.rs", "lines": "12"});
    let result =
        ask(server(), "prompts/get", json!({"name": "review", "arguments": arguments})).await;
    assert_eq!(result["messages"][0]["content"]["text"], "Review 12 lines of main.rs");
}
