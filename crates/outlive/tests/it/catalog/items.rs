//! Tools, prompts, resources and completion of a catalog, in memory or not.

use outlive::server::{Principal, Tool};
use serde_json::json;

use super::world::{both, relay, server, tool_definition};
use crate::support::pipe::{MODERN, Pipe, REVISIONS};

/// Sends a request with exactly these `params` members and returns the line of its response.
async fn line(pipe: &mut Pipe, version: &str, method: &str, members: &str) -> String {
    let meta = match version == MODERN {
        true => format!(
            r#","_meta":{{"io.modelcontextprotocol/protocolVersion":"{MODERN}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#
        ),
        false => String::new(),
    };
    let message =
        format!(r#"{{"jsonrpc":"2.0","id":99,"method":"{method}","params":{{{members}{meta}}}}}"#);
    pipe.send_raw(message.as_bytes()).await;
    pipe.send_raw(b"\n").await;
    pipe.read_line().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn call_of_catalog_tool_passes_arguments_and_result_unchanged() {
    for foreign in both() {
        let server = server(&foreign);
        for version in REVISIONS {
            let mut pipe = Pipe::speaking(&server, version).await;
            let members = r#""name":"far","arguments":{"n": 1.0,"unknown":[1e2]}"#;
            let line = line(&mut pipe, version, "tools/call", members).await;
            let arguments = r#"{\"n\": 1.0,\"unknown\":[1e2]}"#;
            assert!(line.contains(&format!(r#""text":"{arguments}""#)), "{version}: {line}");
            // `_meta` of a content block exists since 2025-06-18. Without it, the result is parsed.
            let has_meta = version >= "2025-06-18";
            let meta = if has_meta { r#""far/y":[1.50]"# } else { r#""far/y":[1.5]"# };
            assert!(line.contains(meta), "{version}: {line}");
            assert_eq!(line.contains(r#"{"far/x":1.0}"#), has_meta, "{version}: {line}");
        }
        let metrics = server.metrics().await.to_string();
        assert!(metrics.contains(r#"tool="far",outcome="completed"} 5"#), "{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn tool_of_another_principal_is_unknown() {
    for foreign in both() {
        let server = server(&foreign);
        let entry = Tool::relayed(tool_definition("own"), relay);
        let entry = foreign.handle().tool(entry).unwrap();
        foreign.private.lock().unwrap().push(("name:ann".to_owned(), entry));
        for (name, exists) in [("ann", true), ("bob", false)] {
            for version in REVISIONS {
                let principal = Principal::named(name);
                let mut pipe = Pipe::speaking_as(&server, version, principal).await;
                let answer = pipe.ask("tools/call", json!({"name": "own"})).await;
                assert_eq!(answer.get("result").is_some(), exists, "{version}: {answer}");
                let tools = pipe.result("tools/list", json!({})).await;
                let listed = tools["tools"].as_array().unwrap();
                assert_eq!(listed.iter().any(|tool| tool["name"] == "own"), exists, "{tools}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn scopes_and_visibility_apply_to_catalog_tools() {
    for foreign in both() {
        let server = server(&foreign);
        let tool = |name| Tool::relayed(tool_definition(name), relay);
        foreign.add(tool("scoped").scopes(["deploy"]));
        foreign.add(tool("hidden").visible_to(|_| false));
        let mut pipe = Pipe::speaking_as(&server, MODERN, Principal::named("ann")).await;
        let scoped = pipe.error("tools/call", json!({"name": "scoped"})).await;
        assert!(scoped.to_string().contains("deploy"), "{scoped}");
        let hidden = pipe.error("tools/call", json!({"name": "hidden"})).await;
        assert_eq!(hidden["code"], -32602, "{hidden}");
        let tools = pipe.result("tools/list", json!({})).await;
        assert_eq!(tools["tools"].as_array().unwrap().len(), 1, "{tools}");
    }
}

#[tokio::test(start_paused = true)]
async fn prompts_resources_and_completion_of_catalog_pass_unchanged() {
    for foreign in both() {
        let server = server(&foreign);
        for version in REVISIONS {
            let mut pipe = Pipe::speaking(&server, version).await;
            let members = r#""name":"brief","arguments":{"n":1.0}"#;
            let prompt = line(&mut pipe, version, "prompts/get", members).await;
            assert!(prompt.contains(r#""text":"{\"n\":1.0}""#), "{version}: {prompt}");
            assert!(prompt.contains(r#""x-far":1.0"#), "{version}: {prompt}");
            let read = line(&mut pipe, version, "resources/read", r#""uri":"far://b?c""#).await;
            assert!(read.contains(r#"{"uri":"far://b?c","text":"far"}"#), "{version}: {read}");
            assert_eq!(read.contains(r#""ttlMs":7"#), version == MODERN, "{version}: {read}");
            let unknown = pipe.error("resources/read", json!({"uri": "near://b"})).await;
            assert!(unknown["message"].as_str().unwrap().contains("near://b"), "{unknown}");
            if version == "2024-11-05" {
                continue;
            }
            for reference in [
                json!({"type": "ref/prompt", "name": "brief"}),
                json!({"type": "ref/resource", "uri": "far://{not a variable}"}),
            ] {
                let params = json!({"ref": reference, "argument": {"name": "any", "value": ""}});
                let completion = pipe.result("completion/complete", params).await;
                assert_eq!(completion["completion"]["values"], json!(["far"]), "{version}");
            }
        }
    }
}
