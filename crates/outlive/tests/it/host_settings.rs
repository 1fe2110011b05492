//! Settings for clients without tasks: on the server and on a tool.

use outlive::server::{
    Server, Tool,
    hosts::{AnswerBy, Hosts, RESERVED_TOOL_NAMES},
    tasks::TaskConfig,
};
use serde_json::json;

use crate::support::pipe::{Pipe, REVISIONS};

async fn work() -> &'static str {
    "done"
}

fn build(hosts: Option<Hosts>, tool: Tool) -> Result<Server, String> {
    let server = Server::builder("hosts", "1").tasks(TaskConfig::in_memory().hosts(hosts));
    server.tool(tool).build().map_err(|error| error.to_string())
}

#[test]
fn tool_with_reserved_name_is_rejected_while_hosts_are_on() {
    for name in RESERVED_TOOL_NAMES {
        let error = build(Some(Hosts::known()), Tool::new(*name, work)).unwrap_err();
        assert!(error.starts_with(&format!("tool `{name}`: a server with `.hosts(…)`")), "{error}");
        assert!(build(None, Tool::new(*name, work)).is_ok(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn tool_with_reserved_name_cannot_be_added_to_running_server() {
    let server = build(Some(Hosts::known()), Tool::new("work", work)).unwrap();
    assert!(server.add_tool(Tool::new("task_result", work)).is_err());
}

#[test]
fn destructive_tool_with_answers_is_rejected() {
    let tool = || Tool::new("work", work).destructive(true);
    let error = build(None, tool().answers([AnswerBy::Link])).unwrap_err();
    assert!(error.contains("it is destructive"), "{error}");
    assert!(build(None, tool().answers([])).is_ok());
    assert!(build(None, Tool::new("work", work).answers([AnswerBy::Tool])).is_ok());
}

#[tokio::test(start_paused = true)]
async fn max_inline_is_announced_in_meta_of_tool() {
    const KEY: &str = "anthropic/maxResultSizeChars";
    for (bytes, announced) in [(200 << 10, 200 << 10), (1 << 20, 500_000)] {
        let tool = Tool::new("work", work).max_inline(bytes);
        let server = build(None, tool).unwrap();
        // Earlier versions have no `_meta` on tools.
        for version in &REVISIONS[2..] {
            let mut pipe = Pipe::speaking(&server, version).await;
            let listed = pipe.result("tools/list", json!({})).await;
            assert_eq!(listed["tools"][0]["_meta"][KEY], announced, "{version}: {listed}");
        }
    }
}
