//! Clients with tasks, and servers without hosts, see what they saw before.

use outlive::server::tasks::TaskConfig;
use serde_json::{Value, json};

use super::world::{Runs, builder, hosts};
use crate::support::pipe::Pipe;

/// Replaces what differs between two runs of the same session: IDs, times and sealed values.
fn normalized(mut message: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members.iter_mut() {
                    let differs = ["taskId", "createdAt", "lastUpdatedAt", "requestState"];
                    match differs.contains(&name.as_str()) {
                        true => *value = json!(name),
                        false => walk(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut message);
    message
}

/// Runs a session of a client that declares tasks, and returns all responses.
async fn session(config: TaskConfig, is_modern: bool) -> Vec<Value> {
    let server = builder(config, &Runs::default()).build().unwrap();
    let mut pipe = Pipe::open(&server);
    let mut seen = Vec::new();
    let modern = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    if !is_modern {
        seen.push(pipe.legacy_with("2025-11-25", json!({"elicitation": {}, "tasks": {}})).await);
    }
    for (method, params) in [
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", json!({"name": "nap", "arguments": {"ms": 100}})),
        ("tools/call", json!({"name": "nap", "arguments": {"ms": 3_000}})),
        ("tools/call", json!({"name": "always", "arguments": {"ms": 3_000}})),
        ("tools/call", json!({"name": "plain", "arguments": {"ms": 3_000}})),
        ("tools/call", json!({"name": "nap", "arguments": {"ms": "many"}})),
        ("tools/call", json!({"name": "unknown", "arguments": {}})),
    ] {
        seen.push(match is_modern {
            true => pipe.modern_with(modern.clone(), method, params).await,
            false => pipe.ask(method, params).await,
        });
    }
    seen.into_iter().map(normalized).collect()
}

#[tokio::test(start_paused = true)]
async fn client_with_tasks_sees_the_same_with_and_without_hosts() {
    for is_modern in [true, false] {
        let without = session(TaskConfig::in_memory(), is_modern).await;
        let with = session(TaskConfig::in_memory().hosts(hosts()), is_modern).await;
        assert_eq!(without, with);
    }
}
