//! The client under test of the official suite.
//!
//! The suite passes the URL of its server as the last argument, names the scenario and the version
//! in the environment, and inspects the requests.

mod authorization;

use std::{env, error::Error};

use outlive::{
    client::{
        Client, ClientBuilder,
        input::{InputCallbacks, InputResponse},
        transport::VersionCache,
    },
    wire::Version,
};
use serde_json::{Value, json};

type Done = Result<(), Box<dyn Error>>;

#[tokio::main]
async fn main() -> Done {
    let url = env::args().next_back().ok_or("the address of the server is missing")?;
    let scenario = env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let version = env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
    let context: Value = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(context) => serde_json::from_str(&context)?,
        Err(_) => Value::Null,
    };
    let version = Version::parse(&version);
    let mut builder = connecting(&scenario, version);
    if scenario.starts_with("auth/") {
        builder = builder.token_source(authorization::oauth(&scenario, &url, &context)?);
    }
    let client = builder.connect(url).await?;
    play(&scenario, &client, &context).await?;
    client.close().await;
    Ok(())
}

/// A client with the features of the scenario.
fn connecting(scenario: &str, version: Option<Version>) -> ClientBuilder {
    let builder =
        Client::builder("outlive-conformance", "1.0.0").version_cache(VersionCache::new());
    let builder = match version {
        Some(version) => builder.protocol_version(version),
        None => builder,
    };
    match scenario {
        "elicitation-sep1034-client-defaults" => {
            builder.input_handler(InputCallbacks::new().form(|question| async move {
                question.defaults().unwrap_or(InputResponse::Decline)
            }))
        }
        "sep-2322-client-request-state" => builder.input_handler(
            InputCallbacks::new()
                .form(|_| async { InputResponse::accept(json!({"confirmed": true})) }),
        ),
        // So that the suite can inspect the declared capabilities.
        "request-metadata" => builder.input_handler(
            InputCallbacks::new()
                .form(|_| async { InputResponse::Decline })
                .sampling(|_| async { InputResponse::Decline })
                .roots([("file:///work", "work")]),
        ),
        _ => builder,
    }
}

/// Reads every file of every skill.
async fn read_skills(client: &Client) -> Done {
    for skill in client.skills().await? {
        client.load_skill(&skill).await?;
        for file in skill.resources.iter().flatten() {
            client.read_skill_file(&skill, &file.uri).await?;
        }
    }
    Ok(())
}

async fn play(scenario: &str, client: &Client, context: &Value) -> Done {
    let tools = client.list_tools().collect().await?;
    match scenario {
        "tools_call" => {
            client.call_tool("add_numbers", json!({"a": 5, "b": 3})).await?;
        }
        "elicitation-sep1034-client-defaults" => {
            client.call_tool("test_client_elicitation_defaults", json!({})).await?;
        }
        "sse-retry" => {
            client.call_tool("test_reconnection", json!({})).await?;
        }
        "sep-2322-client-request-state" => {
            let echo = client.call_tool("test_mrtr_echo_state", json!({}));
            let unrelated = client.call_tool("test_mrtr_unrelated", json!({}));
            // Concurrent, so that the suite notices a misplaced request state.
            let (echo, unrelated) = tokio::join!(echo.into_future(), unrelated.into_future());
            echo?;
            unrelated?;
            client.call_tool("test_mrtr_no_state", json!({})).await?;
            client.call_tool("test_mrtr_no_result_type", json!({})).await?;
        }
        "http-standard-headers" => {
            client.call_tool("test_headers", json!({})).await?;
            for resource in client.list_resources().collect().await? {
                client.read_resource(resource.uri).await?;
            }
            for prompt in client.list_prompts().collect().await? {
                client.get_prompt(prompt.name).await?;
            }
        }
        "http-custom-headers" => {
            for call in context["toolCalls"].as_array().into_iter().flatten() {
                let name = call["name"].as_str().ok_or("a call without a name")?;
                client.call_tool(name, &call["arguments"]).await?;
            }
        }
        "http-invalid-tool-headers" => {
            client.call_tool("valid_tool", json!({"region": "eu"})).await?;
        }
        "json-schema-2020-12-preservation" => {
            let named = |name: &str| tools.iter().find(|tool| tool.name == name);
            let tool = named("json_schema_2020_12_tool").ok_or("the tool is not listed")?;
            let schema = &tool.input_schema;
            client.call_tool("json_schema_echo", json!({"schema": schema})).await?;
        }
        // Listing must not read a file.
        "sep-2640-client-no-prefetch" => {
            client.skills().await?;
        }
        scenario if scenario.starts_with("sep-2640-client-verify-") => read_skills(client).await?,
        scenario if scenario.starts_with("auth/") => {
            client.call_tool("test-tool", json!({})).await?;
        }
        // Listing is enough for `initialize`, `request-metadata` and `json-schema-ref-no-deref`.
        _ => {}
    }
    Ok(())
}
