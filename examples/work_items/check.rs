//! The rules ask for what they require, and a bug is written once, when all of it is there.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::client::{Client, Era, answered, expect, names};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    let kept =
        client.call_answering("tools/call", resolve(4522), |_| Ok(json!({"action": "decline"})))?;
    expect(text(&kept), &json!("Bug #4522 stays Active: there is no resolution."))?;
    expect(&written(client, 4522)?, &json!(["Active", null, null, 1]))?;

    let mut asked = Vec::new();
    let duplicate = client.call_answering("tools/call", resolve(4522), |question| {
        asked.push(question["requestedSchema"]["properties"].clone());
        user(question, "Duplicate")
    })?;
    expect(text(&duplicate), &json!("Bug #4522 resolved as Duplicate of Bug #4301."))?;
    expect(&written(client, 4522)?, &json!(["Resolved", "Duplicate", 4301, 2]))?;
    expect(
        &json!(asked.iter().map(names).collect::<Vec<_>>()),
        &json!([["resolution"], ["duplicateOfId"]]),
    )?;
    let choices = json!(["Fixed", "Won't Fix", "Duplicate", "By Design"]);
    expect(&asked[0]["resolution"]["enum"], &choices)?;

    let fixed =
        client.call_answering("tools/call", resolve(4301), |question| user(question, "Fixed"))?;
    expect(text(&fixed), &json!("Bug #4301 resolved as Fixed."))?;
    expect(&written(client, 4301)?, &json!(["Resolved", "Fixed", null, 2]))?;

    match client.era() {
        Era::Modern => check_rounds(client),
        Era::Legacy => Ok(()),
    }
}

/// Where a call does not wait: it is made again with the last answer only, and the state has the
/// others.
fn check_rounds(client: &mut Client) -> Result<()> {
    let call = resolve(4523);
    let refused = client.refused("tools/call", call.clone())?;
    expect(&refused["data"]["requiredCapabilities"], &json!({"elicitation": {"form": {}}}))?;

    let asked = client.round("tools/call", call.clone())?;
    expect(&names(&asked["inputRequests"]), &json!(["resolution"]))?;
    let second = answered(&call, &asked, |question| user(question, "Duplicate"))?;
    expect(&names(&second["inputResponses"]), &json!(["resolution"]))?;

    let asked = client.round("tools/call", second)?;
    expect(&names(&asked["inputRequests"]), &json!(["duplicate_of"]))?;
    expect(&written(client, 4523)?, &json!(["Active", null, null, 1]))?;
    let third = answered(&call, &asked, |question| user(question, "Duplicate"))?;
    expect(&names(&third["inputResponses"]), &json!(["duplicate_of"]))?;

    let done = client.round("tools/call", third)?;
    expect(text(&done), &json!("Bug #4523 resolved as Duplicate of Bug #4301."))?;
    expect(&written(client, 4523)?, &json!(["Resolved", "Duplicate", 4301, 2]))
}

/// A user who has made up their mind.
fn user(question: &Value, resolution: &str) -> Result<Value> {
    let content = match question["message"].as_str().unwrap_or_default() {
        message if message.starts_with("Resolving Bug #") => json!({"resolution": resolution}),
        message if message.starts_with("Since this is a duplicate") => {
            json!({"duplicateOfId": 4301})
        }
        _ => bail!("nobody expected to be asked {question}"),
    };
    Ok(json!({"action": "accept", "content": content}))
}

fn resolve(id: u32) -> Value {
    let arguments = json!({"workItemId": id, "fields": {"System.State": "Resolved"}});
    json!({"name": "update_work_item", "arguments": arguments})
}

/// State, resolution, original, and how often it was written.
fn written(client: &mut Client, id: u32) -> Result<Value> {
    let look = json!({"name": "get_work_item", "arguments": {"workItemId": id}});
    let bug = client.call("tools/call", look)?["structuredContent"].take();
    Ok(json!([bug["state"], bug["resolution"], bug["duplicateOf"], bug["rev"]]))
}

fn text(result: &Value) -> &Value {
    &result["content"][0]["text"]
}
