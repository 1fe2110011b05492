//! Generated tools, resources and prompts behave like those from the builder.

use std::sync::Arc;

use outlive::{
    prompt, resource,
    server::{Args, Cx, Json, Server, ServerBuilder, State, layer::Session},
    tool,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Builds a server, sends one modern request and returns the result.
async fn ask(server: ServerBuilder, method: &str, params: Value) -> Value {
    ask_with(server, method, params, json!({})).await
}

/// Same as [`ask`], with these client capabilities.
async fn ask_with(
    server: ServerBuilder,
    method: &str,
    params: Value,
    capabilities: Value,
) -> Value {
    let server = server.build().expect("the server builds");
    let connection = server.connect_in_memory();
    let mut request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let mut stream = BufReader::new(connection.stream);
    stream.write_all(format!("{request}\n").as_bytes()).await.expect("the server reads");
    let mut line = String::new();
    stream.read_line(&mut line).await.expect("the server responds");
    let mut answer: Value = serde_json::from_str(&line).expect("the response is JSON");
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].take()
}

async fn call(server: ServerBuilder, name: &str, arguments: Value) -> Value {
    ask(server, "tools/call", json!({"name": name, "arguments": arguments})).await
}

/// Returns the only tool of the server, as listed.
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
async fn tool_is_listed_with_metadata_of_its_function() {
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
    assert_eq!(listed(add::tool()).await, expected);
}

#[tokio::test]
async fn tool_call_passes_arguments_to_the_function() {
    let result = call(server().tool(add::tool()), "add", json!({"a": 2, "b": 3})).await;
    assert_eq!(result["content"][0]["text"], "5");
}

#[tokio::test]
async fn tool_function_stays_callable() {
    assert_eq!(add(1, 2).await, "3");
    assert_eq!(whole(Query { text: "rust".into() }).await, "rust");
    assert_eq!(config_of("debug".into()).await, Some("debug = false".to_owned()));
}

#[tokio::test]
async fn tool_call_with_invalid_arguments_returns_tool_error() {
    let result = call(server().tool(add::tool()), "add", json!({"a": 2, "b": "three"})).await;
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
async fn slow_call_of_tool_with_task_auto_becomes_task() {
    let tasks =
        || server().tasks(outlive::server::tasks::TaskConfig::in_memory()).tool(nap::tool());
    for (seconds, kind) in [(1, "complete"), (3, "task")] {
        let params = json!({"name": "nap", "arguments": {"seconds": seconds}});
        let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        let result = ask_with(tasks(), "tools/call", params, capabilities).await;
        assert_eq!(result["resultType"], kind, "{result}");
    }
    assert!(server().tool(nap::tool()).build().is_err(), "a server without tasks rejects the tool");
}

struct Greeting(&'static str);

mod visible {
    use super::{Cx, Greeting, Session, State};

    /// Every kind of parameter.
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
async fn handler_with_extractors_and_arguments_receives_both() {
    let server = || server().state(Greeting("Hello")).tool(visible::greet::tool());
    let result =
        call(server(), "greet.all", json!({"name": "Ada", "howOften": 2, "type": true})).await;
    assert_eq!(result["structuredContent"], json!(["Hello Ada!", "Hello Ada!"]));
    let result = call(server(), "greet.all", json!({"name": "Ada"})).await;
    assert_eq!(result["structuredContent"], json!(["Hello Ada."]));
    let result = call(server(), "greet.all", json!({"name": "Ada", "howOften": 4})).await;
    assert_eq!(result["isError"], true, "attributes of `schemars` are kept");
}

#[tokio::test]
async fn parameter_attributes_apply_to_schema_fields() {
    let server = server().state(Greeting("Hello")).tool(visible::greet::tool());
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
async fn handler_with_one_argument_type_receives_all_arguments() {
    let arguments = json!({"text": "rust"});
    let result = call(server().tool(whole::tool()), "whole", arguments.clone()).await;
    assert_eq!(result["content"][0]["text"], "rust");
    let result = call(server().tool(taken_apart::tool()), "taken_apart", arguments).await;
    assert_eq!(result["content"][0]["text"], "rust");
}

#[tool]
async fn nothing() {}

// The lint and the attribute apply to the original parameter.
#[tool]
#[expect(unused_variables, reason = "attributes of the function are kept")]
async fn ignores(first: bool, #[cfg(false)] never: Missing) {}

#[tokio::test]
async fn tool_without_arguments_and_description_is_listed() {
    let expected = json!({"name": "nothing", "inputSchema": {"type": "object", "additionalProperties": false}});
    assert_eq!(listed(nothing::tool()).await, expected);
}

#[tokio::test]
async fn parameter_with_false_cfg_is_not_listed() {
    let input = listed(ignores::tool()).await["inputSchema"].take();
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
async fn resource_with_fixed_uri_is_listed_and_read() {
    let server = || server().state(Greeting("{}")).resource(config::resource());
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
async fn resource_template_fills_parameters_from_the_uri() {
    let server = || server().resource_template(user_by_id::resource_template());
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
async fn prompt_parses_arguments_from_strings() {
    let server = || server().prompt(review::prompt());
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

/// One setting, by name.
#[resource("config://app/{name}")]
async fn config_of(name: impls::Name) -> Option<String> {
    (name.0 == "debug").then(|| "debug = false".to_owned())
}

mod impls {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    pub(super) struct Name(pub(super) String);

    impl From<&str> for Name {
        fn from(name: &str) -> Self {
            Self(name.to_owned())
        }
    }
}

type Ctx = outlive::server::Durable;

/// An argument type with the name of an extractor of Outlive.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Task {
    title: String,
}

/// A custom extractor.
struct Tenant(String);

impl outlive::server::extract::Extract for Tenant {
    fn extract(cx: &Cx) -> Result<Self, outlive::server::extract::Rejection> {
        Ok(Self(format!("{:?}", cx.principal())))
    }
}

#[tool]
async fn by_type(
    cx: Ctx,
    a: String,
    task: Task,
    tenant: Tenant,
) -> outlive::server::Result<String> {
    let length: usize = cx.step("measure", async || Ok(a.len())).await?;
    Ok(format!("{length} {} {}", task.title, !tenant.0.is_empty()))
}

#[tokio::test]
async fn parameter_with_alias_of_extractor_is_extractor() {
    let input = listed(by_type::tool()).await["inputSchema"].take();
    let names: Vec<_> = input["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["a", "task"]);
    assert_eq!(input["required"], json!(["a", "task"]));
    let arguments = json!({"a": "four", "task": {"title": "wash"}, "cx": "not for clients"});
    let result = call(server().tool(by_type::tool()), "by_type", arguments).await;
    assert_eq!(result["content"][0]["text"], "4 wash true");
}

#[tool]
async fn only_extractors(_cx: Ctx, Tenant(tenant): Tenant) -> String {
    tenant
}

#[resource("tenant://me")]
async fn tenant_resource(tenant: Tenant) -> String {
    tenant.0
}

#[prompt]
async fn tenant_prompt(tenant: Tenant, topic: String) -> String {
    format!("{topic} {}", !tenant.0.is_empty())
}

#[tokio::test]
async fn handlers_with_only_extractors_have_no_arguments() {
    let expected = json!({"type": "object", "additionalProperties": false});
    assert_eq!(listed(only_extractors::tool()).await["inputSchema"], expected);
    let resource = server().resource(tenant_resource::resource());
    let read = ask(resource, "resources/read", json!({"uri": "tenant://me"})).await;
    assert!(read["contents"][0]["text"].is_string());
    let prompt = || server().prompt(tenant_prompt::prompt());
    let listed = ask(prompt(), "prompts/list", json!({})).await["prompts"][0].take();
    assert_eq!(listed["arguments"], json!([{"name": "topic", "required": true}]));
    let arguments = json!({"name": "tenant_prompt", "arguments": {"topic": "rent"}});
    let got = ask(prompt(), "prompts/get", arguments).await;
    assert_eq!(got["messages"][0]["content"]["text"], "rent true");
}

#[derive(Clone, Copy)]
struct Number<const N: u32>;

#[tool]
async fn seven_states(
    _a: State<Number<1>>,
    _b: State<Number<2>>,
    _c: State<Number<3>>,
    _d: State<Number<4>>,
    _e: State<Number<5>>,
    _f: State<Number<6>>,
    _g: State<Number<7>>,
    name: String,
) -> String {
    name
}

#[tokio::test]
async fn handler_with_seven_states_and_one_argument_is_called() {
    let server =
        server().state(Number::<1>).state(Number::<2>).state(Number::<3>).state(Number::<4>);
    let server = server.state(Number::<5>).state(Number::<6>).state(Number::<7>);
    let result =
        call(server.tool(seven_states::tool()), "seven_states", json!({"name": "Ada"})).await;
    assert_eq!(result["content"][0]["text"], "Ada");
}
