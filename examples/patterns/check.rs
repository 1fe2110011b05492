//! Each tool is a task when it should be, and asks where it should.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use crate::client::{Client, Ended, Era, Place, expect};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    let modern = client.era() == Era::Modern;
    // On 2025-11-25 the client says which calls are tasks, and those are so from the beginning.
    let first = if modern { Place::Call } else { Place::Task };
    see(client, "render", &json!({"frames": 1}), "1 frames", !modern, &[])?;
    see(client, "render", &json!({"frames": 10}), "10 frames", true, &[])?;
    see(client, "brew", &json!({}), "a cup of tea", true, &[first])?;
    see(client, "clean_up", &json!({}), "2 files deleted", true, &[Place::Task])?;
    see(client, "greet", &json!({}), "Hello, Ada!", false, &[Place::Call])?;

    // Who holds no tasks is answered, and is refused the tool that is nothing else.
    let waited = client.call("tools/call", call("render", &json!({"frames": 10})))?;
    expect(&waited["content"][0]["text"], &json!("10 frames"))?;
    let refused = client.refused("tools/call", call("clean_up", &json!({})))?;
    expect(&refused["code"], &json!(if modern { -32021 } else { -32601 }))
}

/// Calls a tool as a client that holds tasks; what comes of it, whether as a task, and where its user
/// was asked.
fn see(
    client: &mut Client,
    tool: &str,
    arguments: &Value,
    text: &str,
    is_task: bool,
    places: &[Place],
) -> Result<()> {
    let mut asked = Vec::new();
    let Ended { task, result } = client.see_through(call(tool, arguments), |place, question| {
        asked.push(place);
        user(question)
    })?;
    expect(&result["content"][0]["text"], &json!(text))?;
    ensure!(task.is_some() == is_task, "{tool}: a task: {}", task.is_some());
    ensure!(asked == places, "{tool}: asked in {asked:?}");
    Ok(())
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

fn user(question: &Value) -> Result<Value> {
    let content = match question["message"].as_str() {
        Some("What would you like?") => json!({"drink": "tea"}),
        Some("Delete a.log, b.log?") => json!({"yes": true}),
        Some("Who are you?") => json!({"name": "Ada"}),
        _ => bail!("nobody expected to be asked {question}"),
    };
    Ok(json!({"action": "accept", "content": content}))
}
