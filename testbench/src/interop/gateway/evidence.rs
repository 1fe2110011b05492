//! The messages by which a feature is recognized on a connection.
//!
//! Both connections of the gateway speak MCP, so most features have the same messages on both, by
//! the protocol version of the connection. They must occur in the given order; other messages may
//! be between them.

use serde_json::Value;

use super::versions::Version;
use super::wire::{Seen, Sender};

/// A connection of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Connection {
    Client,
    Upstream,
}

type Predicate = fn(&Value) -> bool;

/// A message that must occur.
pub(super) struct Trace {
    sender: Sender,
    /// Name of the message, for the report.
    name: &'static str,
    is: Box<dyn Fn(&Value) -> bool>,
}

/// Returns the name of the first message that does not occur.
pub(super) fn missing(traces: &[Trace], messages: &[Seen]) -> Option<&'static str> {
    let mut rest = messages.iter();
    let lost = traces
        .iter()
        .find(|trace| !rest.any(|seen| seen.sender == trace.sender && (trace.is)(&seen.message)));
    lost.map(|trace| trace.name)
}

/// Returns why the messages of a connection are not of this protocol version.
pub(super) fn wrong_version(version: Version, messages: &[Seen]) -> Option<String> {
    let of = |sender: Sender| messages.iter().filter(move |seen| seen.sender == sender);
    let agreed: Vec<&str> = of(Sender::Server)
        .filter_map(|seen| seen.message["result"]["protocolVersion"].as_str())
        .collect();
    let key = "io.modelcontextprotocol/protocolVersion";
    let is_modern =
        of(Sender::Client).any(|seen| seen.message["params"]["_meta"][key] == Version::V26.name());
    let fits = match version.is_modern() {
        true => is_modern && agreed.is_empty(),
        false => !agreed.is_empty() && agreed.iter().all(|agreed| *agreed == version.name()),
    };
    (!fits).then(|| {
        let name = version.name();
        format!("the connection is not of {name}; the versions of its handshakes: {agreed:?}")
    })
}

/// The messages of a feature, by the name of its function in the client scripts. The first one is
/// the call of its tool, so that messages of other features do not count.
pub(super) fn of(driver: &str, version: Version, connection: Connection) -> Vec<Trace> {
    let modern = version.is_modern();
    let upstream = connection == Connection::Upstream;
    let mut traces: Vec<Trace> = tool(driver)
        .map(|tool| client("the call", move |it| is_call(it, tool)))
        .into_iter()
        .collect();
    traces.extend(match driver {
        "url_required" if upstream => vec![
            server("error -32042", |it| it["error"]["code"] == -32042),
            client("the call again", |it| is_call(it, "test_url_required")),
            server("the result of the call", |it| text(it).contains("consented")),
        ],
        "task" if upstream => Vec::new(),
        "task" => task(modern),
        "task_input" if !upstream => task_input(modern),
        "hosted" if !upstream => hosted(),
        "gateway_state" if !upstream => state(),
        "state" => state(),
        "partials" => partials(modern),
        "elicitation" | "url" | "url_required" | "sampling" | "gateway_state" | "task_input"
        | "hosted" | "roots" => input(driver, modern),
        _ => plain(driver, modern),
    });
    traces
}

/// The tool that a function of the client scripts calls.
fn tool(driver: &str) -> Option<&'static str> {
    Some(match driver {
        "tools" => "test_simple_text",
        "elicitation" => "test_elicitation",
        "url" => "test_url_elicitation",
        "url_required" => "test_url_required",
        "sampling" | "gateway_state" | "hosted" => "test_sampling",
        "roots" => "test_input_required_result_list_roots",
        "progress" => "test_tool_with_progress",
        "cancel" => "hold",
        "logging" => "test_tool_with_logging",
        "listen" => "test_trigger_tool_change",
        "subscribe" => "test_touch_resource",
        "task" => "slow_compute",
        "task_input" => "sample_in_task",
        "state" => "test_input_required_result_request_state",
        "partials" => "test_partial_results",
        _ => return None,
    })
}

/// The messages of features without input requests and tasks.
fn plain(driver: &str, modern: bool) -> Vec<Trace> {
    match driver {
        "tools" => vec![server("the result", |it| text(it).contains("simple text response"))],
        "progress" => vec![
            server("progress", |it| it["method"] == "notifications/progress"),
            server("more progress", |it| it["method"] == "notifications/progress"),
        ],
        // Over HTTP, a modern client cancels a call when it closes its stream.
        "cancel" if modern => vec![server("a cancelled call", is_cancelled)],
        "cancel" => vec![
            client("notifications/cancelled", |it| it["method"] == "notifications/cancelled"),
            server("a cancelled call", is_cancelled),
        ],
        "logging" => vec![server("a log message", |it| it["method"] == "notifications/message")],
        "listen" => vec![server("notifications/tools/list_changed", |it| {
            it["method"] == "notifications/tools/list_changed"
        })],
        "subscribe" => vec![server("notifications/resources/updated", |it| {
            it["method"] == "notifications/resources/updated"
                && it["params"]["uri"] == "test://watched-resource"
        })],
        "completion" => vec![
            client("completion/complete", |it| it["method"] == "completion/complete"),
            server("the values", |it| it["result"]["completion"]["values"].is_array()),
        ],
        "prompts" => vec![
            client("prompts/get", |it| it["method"] == "prompts/get"),
            server("the messages", |it| it["result"]["messages"].is_array()),
        ],
        "resources" => vec![
            client("resources/read", |it| it["params"]["uri"] == "test://static-text"),
            server("the contents", |it| it["result"]["contents"].is_array()),
        ],
        "templates" => vec![
            client("resources/read", |it| it["params"]["uri"] == "test://template/7/data"),
            server("the contents", |it| it["result"]["contents"].to_string().contains("ID: 7")),
        ],
        // No message is evidence of a function without an entry here.
        _ => vec![server("a function with an entry in `evidence`", |_| false)],
    }
}

/// An input request and its response: messages of their own before 2026-07-28, and parts of two
/// rounds in it.
fn input(driver: &str, modern: bool) -> Vec<Trace> {
    let (request, response): (Predicate, Predicate) = match driver {
        "elicitation" => (
            |it| it["method"] == "elicitation/create" && it["params"]["mode"] != "url",
            |it| it["action"] == "accept" && it["content"].is_object(),
        ),
        "url" | "url_required" => (
            |it| it["method"] == "elicitation/create" && it["params"]["mode"] == "url",
            |it| it["action"] == "accept",
        ),
        "roots" => (|it| it["method"] == "roots/list", |it| it["roots"].is_array()),
        _ => (|it| it["method"] == "sampling/createMessage", |it| it["model"].is_string()),
    };
    if !modern {
        return vec![
            server("the input request", request),
            client("the input response", move |it| response(&it["result"])),
        ];
    }
    let any = |map: &Value, is: Predicate| map.as_object().is_some_and(|it| it.values().any(is));
    vec![
        server("the input request", move |it| any(&it["result"]["inputRequests"], request)),
        client("the input response", move |it| any(&it["params"]["inputResponses"], response)),
    ]
}

/// A call that becomes a task, its poll and its result.
fn task(modern: bool) -> Vec<Trace> {
    if modern {
        return vec![
            server("the task", |it| it["result"]["resultType"] == "task"),
            client("tasks/get", |it| it["method"] == "tasks/get"),
            server("the completed task", |it| it["result"]["status"] == "completed"),
        ];
    }
    vec![
        server("the task", |it| it["result"]["task"]["taskId"].is_string()),
        client("tasks/result", |it| it["method"] == "tasks/result"),
        server("the result of the task", |it| text(it).contains("took")),
    ]
}

/// An input request in a task, and its response.
fn task_input(modern: bool) -> Vec<Trace> {
    if modern {
        return vec![
            server("the input request in the task", |it| {
                it["result"]["taskId"].is_string() && it["result"]["inputRequests"].is_object()
            }),
            client("tasks/update", |it| it["method"] == "tasks/update"),
        ];
    }
    let related = "io.modelcontextprotocol/related-task";
    vec![
        server("an input request that names the task", move |it| {
            it["method"] == "sampling/createMessage" && it["params"]["_meta"][related].is_object()
        }),
        client("the input response", |it| it["result"]["model"].is_string()),
    ]
}

/// An input request that the client hosts as a task.
fn hosted() -> Vec<Trace> {
    vec![
        server("an input request with `task`", |it| {
            it["method"] == "sampling/createMessage" && it["params"]["task"].is_object()
        }),
        client("the client's task", |it| it["result"]["task"]["taskId"].is_string()),
        server("tasks/result", |it| it["method"] == "tasks/result"),
        client("the input response", |it| it["result"]["model"].is_string()),
    ]
}

/// A request state, and its return.
fn state() -> Vec<Trace> {
    vec![
        server("a request state", |it| it["result"]["requestState"].is_string()),
        client("the request state", |it| it["params"]["requestState"].is_string()),
    ]
}

/// Segments before the end of a task.
fn partials(modern: bool) -> Vec<Trace> {
    if modern {
        return vec![server("segments", |it| {
            it.to_string().contains("dev.outlive/partials") && it.to_string().contains("\"seq\"")
        })];
    }
    vec![server("partial content", |it| it["result"]["partial-content"].is_array())]
}

fn client(name: &'static str, is: impl Fn(&Value) -> bool + 'static) -> Trace {
    Trace { sender: Sender::Client, name, is: Box::new(is) }
}

fn server(name: &'static str, is: impl Fn(&Value) -> bool + 'static) -> Trace {
    Trace { sender: Sender::Server, name, is: Box::new(is) }
}

fn is_call(message: &Value, tool: &str) -> bool {
    message["method"] == "tools/call" && message["params"]["name"] == tool
}

/// Whether the tool that counts cancelled calls returned one.
fn is_cancelled(message: &Value) -> bool {
    text(message).contains("cancelled: 1")
}

/// The texts of a tool's result.
fn text(message: &Value) -> String {
    let blocks = message["result"]["content"].as_array().into_iter().flatten();
    blocks.filter_map(|block| block["text"].as_str()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Connection, Seen, Sender, Value, Version, missing, of, wrong_version};

    fn seen(sender: Sender, message: Value) -> Seen {
        Seen { sender, message }
    }

    fn call(tool: &str) -> Seen {
        seen(Sender::Client, json!({"method": "tools/call", "params": {"name": tool}}))
    }

    #[test]
    fn input_request_is_found_in_both_eras() {
        let form = json!({"method": "elicitation/create", "params": {"message": "m"}});
        let accepted = json!({"action": "accept", "content": {}});
        let legacy = [
            call("test_elicitation"),
            seen(Sender::Server, form.clone()),
            seen(Sender::Client, json!({"result": accepted.clone()})),
        ];
        let modern = [
            call("test_elicitation"),
            seen(Sender::Server, json!({"result": {"inputRequests": {"a": form}}})),
            seen(Sender::Client, json!({"params": {"inputResponses": {"a": accepted}}})),
        ];
        let lost = |version, messages: &[Seen]| {
            missing(&of("elicitation", version, Connection::Client), messages)
        };
        assert_eq!(lost(Version::V511, &legacy), None);
        assert_eq!(lost(Version::V26, &modern), None);
        assert_eq!(lost(Version::V26, &legacy), Some("the input request"));
        assert_eq!(lost(Version::V511, &legacy[..2]), Some("the input response"));
        let reversed = [legacy[0].clone(), legacy[2].clone(), legacy[1].clone()];
        assert_eq!(lost(Version::V511, &reversed), Some("the input response"));
    }

    #[test]
    fn message_of_the_other_side_or_of_another_call_does_not_count() {
        let log = json!({"method": "notifications/message", "params": {}});
        let traces = of("logging", Version::V24, Connection::Upstream);
        let call = call("test_tool_with_logging");
        let lost = |sender, first: bool| {
            let log = seen(sender, log.clone());
            let messages = if first { [log, call.clone()] } else { [call.clone(), log] };
            missing(&traces, &messages)
        };
        assert_eq!(lost(Sender::Server, false), None);
        assert_eq!(lost(Sender::Client, false), Some("a log message"));
        assert_eq!(lost(Sender::Server, true), Some("a log message"));
    }

    #[test]
    fn version_is_that_of_the_handshake_or_of_the_requests() {
        let agreed =
            |version: &str| [seen(Sender::Server, json!({"result": {"protocolVersion": version}}))];
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        let request = [seen(Sender::Client, json!({"params": {"_meta": meta}}))];
        assert_eq!(wrong_version(Version::V503, &agreed("2025-03-26")), None);
        assert!(wrong_version(Version::V503, &agreed("2025-06-18")).is_some());
        assert!(wrong_version(Version::V26, &agreed("2025-06-18")).is_some());
        assert_eq!(wrong_version(Version::V26, &request), None);
        assert!(wrong_version(Version::V511, &request).is_some());
    }
}
