//! Lists: registered items first, then those of the catalog.

use std::sync::Arc;

use outlive::server::{Server, Tool};
use serde_json::{Value, json};

use super::world::{Foreign, both, relay, serve, tool_definition};
use crate::support::pipe::{MODERN, Pipe, REVISIONS};

fn builder() -> outlive::server::ServerBuilder {
    Server::builder("near", "1")
        .limits(|limits| limits.page_size = 2)
        .tool(Tool::new("z1", async || "near"))
        .tool(Tool::new("far2", async || "near"))
        .tool(Tool::new("z3", async || "near"))
}

fn names(page: &Value) -> Vec<&str> {
    let tools = page["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn pages_continue_from_registered_tools_to_catalog() {
    for foreign in both() {
        let server = serve(&foreign, builder());
        for name in ["far2", "far4", "far6"] {
            foreign.add(Tool::relayed(tool_definition(name), relay));
        }
        for version in REVISIONS {
            let mut pipe = Pipe::speaking(&server, version).await;
            let first = pipe.result("tools/list", json!({})).await;
            assert_eq!(names(&first), ["z1", "far2"], "{version}");
            let params = json!({"cursor": first["nextCursor"]});
            let second = pipe.result("tools/list", params).await;
            assert_eq!(names(&second), ["z3", "far"], "{version}");
            let params = json!({"cursor": second["nextCursor"]});
            let third = pipe.result("tools/list", params).await;
            // The catalog's `far2` is hidden by the registered tool.
            assert_eq!(names(&third), ["far4"], "{version}");
            let params = json!({"cursor": third["nextCursor"]});
            let last = pipe.result("tools/list", params).await;
            assert_eq!(names(&last), ["far6"], "{version}");
            assert!(last.get("nextCursor").is_none(), "{version}: {last}");
            let called = pipe.call("far2", json!({})).await;
            assert_eq!(called["content"][0]["text"], "near", "{version}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn page_stays_right_when_catalog_changes() {
    let foreign = Arc::<Foreign>::default();
    let server =
        serve(&foreign, Server::builder("near", "1").limits(|limits| limits.page_size = 1));
    foreign.add(Tool::relayed(tool_definition("far2"), relay));
    let mut pipe = Pipe::speaking(&server, MODERN).await;
    let first = pipe.result("tools/list", json!({})).await;
    assert_eq!(names(&first), ["far"]);
    foreign.tools.lock().unwrap().remove(0);
    foreign.add(Tool::relayed(tool_definition("eve"), relay));
    let second = pipe.result("tools/list", json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(names(&second), ["far2"], "nothing is repeated or left out");
    let error = pipe.error("prompts/list", json!({"cursor": first["nextCursor"]})).await;
    assert_eq!(error["code"], -32602, "{error}");
}

#[tokio::test(start_paused = true)]
async fn definition_of_catalog_tool_is_listed_unchanged() {
    let foreign = Arc::<Foreign>::default();
    let server = serve(&foreign, Server::builder("near", "1"));
    let mut pipe = Pipe::speaking(&server, "2025-11-25").await;
    let tools = pipe.result("tools/list", json!({})).await;
    let definition = serde_json::to_value(tool_definition("far")).unwrap();
    assert_eq!(tools["tools"], json!([definition]));
    let templates = pipe.result("resources/templates/list", json!({})).await;
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "far://{not a variable}");
}

#[tokio::test(start_paused = true)]
async fn server_with_catalog_declares_features_of_empty_lists() {
    let foreign = Arc::<Foreign>::default();
    let server = Server::builder("near", "1").catalog(foreign as _).build().unwrap();
    let mut pipe = Pipe::open(&server);
    let hello = pipe.legacy("2025-11-25").await;
    let expected = json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "completions": {},
        "logging": {},
    });
    assert_eq!(hello["capabilities"], expected);
    let tools = pipe.result("tools/list", json!({})).await;
    assert_eq!(tools["tools"], json!([]));
}
