//! The gateway's own tools: `upstream_problems`, `find_tools` and `call_tool`.

use std::sync::{Arc, Weak};

use outlive::{
    server::{
        Cx, Durable, Error, Principal, Result, Tool,
        catalog::{CatalogHandle, ToolEntry},
    },
    wire::RawJson,
};
use serde::Deserialize;
use serde_json::{Value, json, value::to_raw_value};

use crate::{
    assemble,
    member::Member,
    relay::{CALL_TOOL, agrees, missing_login},
    search::Index,
    shared::Shared,
    status::Problem,
};

/// Name of the tool that reports problems.
pub(crate) const UPSTREAM_PROBLEMS: &str = "upstream_problems";

/// Name of the tool that searches for tools.
pub(crate) const FIND_TOOLS: &str = "find_tools";

/// Bytes of the definitions that one search returns.
const MAX_FOUND: usize = 8 << 10;

/// The gateway's own tools as entries.
#[derive(Clone, Debug)]
pub(crate) struct OwnTools {
    pub(crate) problems: ToolEntry,
    pub(crate) find: ToolEntry,
    pub(crate) call: ToolEntry,
}

impl OwnTools {
    /// Makes the entries. Returns `None` if the server refuses them.
    pub(crate) fn new(handle: &CatalogHandle, shared: &Weak<Shared>) -> Option<Self> {
        let tools = [problems_tool(shared), find_tool(shared), call_tool()];
        let [problems, find, call] = tools.map(|tool| {
            let made = handle.tool(tool);
            made.inspect_err(|error| tracing::error!(%error, "cannot make a tool of the gateway"))
                .ok()
        });
        Some(Self { problems: problems?, find: find?, call: call? })
    }
}

/// Returns the problems of the upstreams that a principal may see, and its own ones there, by the
/// name of the upstream.
pub(crate) fn problems(shared: &Shared, principal: &Principal) -> Vec<(Arc<str>, Problem)> {
    let config = shared.config();
    let with_problem = config.members.iter().filter_map(|member| {
        let problem = member.state().problem_for(principal.key());
        let problem = problem.filter(|problem| !problem.state.is_usable())?;
        may_see(principal, member).then(|| (Arc::clone(&member.settings().name), problem))
    });
    with_problem.collect()
}

/// Returns whether a principal has the scopes of an upstream.
pub(crate) fn may_see(principal: &Principal, member: &Member) -> bool {
    let settings = member.settings();
    let scopes = settings.policy.scopes.iter().flatten();
    principal.may(&outlive::server::Scopes::of(scopes))
}

fn problems_tool(shared: &Weak<Shared>) -> Tool {
    let shared = shared.clone();
    let handler = move |cx: Durable| {
        let shared = shared.upgrade();
        async move { problems_text(shared.as_deref(), &cx).await }
    };
    Tool::new(UPSTREAM_PROBLEMS, handler)
        .title("Problems of upstream servers")
        .description(
            "Returns which servers behind this one cannot be used at the moment, why, and what \
             helps. Call it if a tool that should exist is missing.",
        )
        .read_only()
}

/// Returns the problems of the upstreams. Asks the user to log in where that helps.
async fn problems_text(shared: Option<&Shared>, cx: &Durable) -> Result<String> {
    let Some(shared) = shared else { return Ok(NO_PROBLEM.to_owned()) };
    let mut lines = Vec::new();
    for (name, problem) in problems(shared, cx.principal()) {
        let url = match problem.is_of_principal {
            true => shared.credentials.connect_url(&name, cx.principal()),
            false => None,
        };
        lines.push(match url {
            Some(url) if agrees(cx, &name, &url).await? => {
                format!("{name}: the user was asked to log in; list the tools again after that")
            }
            Some(url) => missing_login(&name, &url),
            None => {
                // Clients do not see addresses, which may be in the reason of a failed connection.
                let reason = without_addresses(&problem.reason);
                format!("{name}: {}: {reason}; {}", problem.state, problem.remedy)
            }
        });
    }
    match lines.is_empty() {
        true => Ok(NO_PROBLEM.to_owned()),
        false => Ok(lines.join("\n")),
    }
}

const NO_PROBLEM: &str = "all upstream servers can be used";

/// Replaces words that contain a URL or a network address.
fn without_addresses(text: &str) -> String {
    let is_address = |word: &str| {
        let word = word.trim_matches(|char: char| "`'\"(),;[]".contains(char));
        word.contains("://") || word.parse::<std::net::SocketAddr>().is_ok()
    };
    let words = text.split(' ').map(|word| if is_address(word) { "its address" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[derive(Deserialize)]
struct Search {
    query: String,
}

fn find_tool(shared: &Weak<Shared>) -> Tool {
    let shared = shared.clone();
    let handler = move |cx: Cx| {
        let shared = shared.upgrade();
        async move { find(shared.as_ref(), &cx) }
    };
    let schema = json!({
        "type": "object",
        "properties": {"query": {"type": "string", "description": "Words that describe the task"}},
        "required": ["query"],
    });
    with_schema(Tool::new(FIND_TOOLS, handler), &schema)
        .title("Find tools")
        .description(
            "Searches the tools of this server and returns the definitions of the best ones. Call \
             one of them with `call_tool`.",
        )
        .read_only()
}

fn find(shared: Option<&Arc<Shared>>, cx: &Cx) -> Result<String> {
    let shared = shared.ok_or_else(|| Error::new("the gateway has ended"))?;
    let search: Search = serde_json::from_str(cx.call().arguments()?)?;
    let view = assemble::view(shared, &shared.view_key(cx.call()));
    let visible: Vec<_> =
        view.tools.iter().filter(|(_, tool)| cx.principal().may(&tool.scopes)).collect();
    let texts: Vec<[(String, f64); 4]> =
        visible.iter().map(|(_, tool)| fields(tool.entry.definition())).collect();
    let index = Index::new(
        texts.iter().map(|fields| fields.iter().map(|(text, weight)| (text.as_str(), *weight))),
    );
    let mut found = Vec::new();
    let mut bytes = 0;
    for number in index.search(&search.query, shared.config().settings.search_results) {
        let definition = serde_json::to_string(visible[number].1.entry.definition())?;
        bytes += definition.len();
        // The first one is returned whatever its size.
        if bytes > MAX_FOUND && !found.is_empty() {
            break;
        }
        found.push(definition);
    }
    match found.is_empty() {
        true => Ok("no tool matches; use other words".to_owned()),
        false => Ok(found.join("\n")),
    }
}

/// Returns the searched texts of a tool with their weights.
fn fields(tool: &outlive::wire::Tool) -> [(String, f64); 4] {
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let arguments: Vec<&str> = properties
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default();
    [
        (tool.name.clone(), 3.0),
        (tool.title.clone().unwrap_or_default(), 2.0),
        (tool.description.clone().unwrap_or_default(), 1.0),
        (arguments.join(" "), 1.0),
    ]
}

/// Returns the tool that is listed as `call_tool`. A call gets the entry of the inner tool instead,
/// so this handler runs only for an invalid call.
fn call_tool() -> Tool {
    let handler = async || {
        Err::<String, Error>(Error::new(
            "`name` must be a tool that `find_tools` returned, and `arguments` an object",
        ))
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Name of a tool that `find_tools` returned"},
            "arguments": {"type": "object", "description": "Arguments of that tool"},
        },
        "required": ["name"],
    });
    with_schema(Tool::new(CALL_TOOL, handler), &schema)
        .title("Call a tool")
        .description("Calls a tool that `find_tools` returned.")
}

fn with_schema(tool: Tool, schema: &Value) -> Tool {
    match to_raw_value(schema) {
        Ok(schema) => tool.input_schema(RawJson::from(schema)),
        Err(_) => tool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_removed_from_reasons() {
        let text =
            without_addresses("cannot connect to `https://a.example/mcp` at 10.0.0.1:443 now");
        assert_eq!(text, "cannot connect to its address at its address now");
    }
}
