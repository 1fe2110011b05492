//! Checks that the rules request missing fields, and that a bug is written once with all fields.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use outlive::client::{
    Client,
    input::{InputKind, InputResponse},
    request::result_text,
};
use serde_json::{Value, json};

use crate::stage::{
    Era, Stage, answered, answering, expect, names, plain, refusal, round, shown,
    unexpected_request,
};

/// A user and the forms that the user received.
#[derive(Clone, Default)]
struct User(Arc<Mutex<UserState>>);

#[derive(Default)]
struct UserState {
    /// `None` if the user declines.
    resolution: Option<&'static str>,
    asked: Vec<Value>,
}

impl User {
    fn state(&self) -> MutexGuard<'_, UserState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let (user, server) = (User::default(), stage.start(&[])?);
    let asked = user.clone();
    let client = server.connect(answering(move |question, message| {
        let mut state = asked.state();
        let InputKind::Form(form) = &question.request else { return unexpected_request(question) };
        let Ok(form) = shown(&form.requested_schema) else { return unexpected_request(question) };
        state.asked.push(form["properties"].clone());
        let Some(resolution) = state.resolution else { return InputResponse::Decline };
        answer(message, resolution)
            .map_or_else(|| unexpected_request(question), InputResponse::accept)
    }));
    let client = client.await?;

    expect(resolve(&client, 4522).await?, "Bug #4522 stays Active: no resolution was given.")?;
    expect(written(&client, 4522).await?, json!(["Active", null, null, 1]))?;

    *user.state() = UserState { resolution: Some("Duplicate"), asked: Vec::new() };
    expect(resolve(&client, 4522).await?, "Bug #4522 resolved as Duplicate of Bug #4301.")?;
    expect(written(&client, 4522).await?, json!(["Resolved", "Duplicate", 4301, 2]))?;
    let asked = std::mem::take(&mut user.state().asked);
    let fields: Value = asked.iter().map(names).collect();
    expect(fields, json!([["resolution"], ["duplicateOfId"]]))?;
    let choices = json!(["Fixed", "Won't Fix", "Duplicate", "By Design"]);
    expect(asked[0]["resolution"]["enum"].clone(), choices)?;

    user.state().resolution = Some("Fixed");
    expect(resolve(&client, 4301).await?, "Bug #4301 resolved as Fixed.")?;
    expect(written(&client, 4301).await?, json!(["Resolved", "Fixed", null, 2]))?;

    match stage.era {
        Era::Modern => {
            // A client without elicitation gets an error that names the missing capability.
            let plain_client = server.connect(plain()).await?;
            let (_, data) =
                refusal(plain_client.call_tool("update_work_item", arguments(4523)).await)?;
            expect(data["requiredCapabilities"].clone(), json!({"elicitation": {"form": {}}}))?;
            check_rounds(&client).await
        }
        Era::Legacy => Ok(()),
    }
}

/// Checks the rounds of a modern call: each round sends only the latest input response, and the
/// request state contains the others.
async fn check_rounds(client: &Client) -> Result<()> {
    let duplicate = |message: &str| answer(message, "Duplicate");
    let call = json!({"name": "update_work_item", "arguments": arguments(4523)});
    let asked = round(client, &call).await?;
    expect(names(&asked["inputRequests"]), json!(["resolution"]))?;
    let second = answered(&call, &asked, duplicate)?;
    expect(names(&second["inputResponses"]), json!(["resolution"]))?;

    let asked = round(client, &second).await?;
    expect(names(&asked["inputRequests"]), json!(["duplicate_of"]))?;
    expect(written(client, 4523).await?, json!(["Active", null, null, 1]))?;
    let third = answered(&call, &asked, duplicate)?;
    expect(names(&third["inputResponses"]), json!(["duplicate_of"]))?;

    let done = round(client, &third).await?;
    let text = done["content"][0]["text"].clone();
    expect(text, "Bug #4523 resolved as Duplicate of Bug #4301.")?;
    expect(written(client, 4523).await?, json!(["Resolved", "Duplicate", 4301, 2]))
}

/// Returns the response of a user who has decided.
fn answer(message: &str, resolution: &str) -> Option<Value> {
    match message {
        _ if message.starts_with("Resolving Bug #") => Some(json!({"resolution": resolution})),
        _ if message.starts_with("Since this is a duplicate") => {
            Some(json!({"duplicateOfId": 4301}))
        }
        _ => None,
    }
}

fn arguments(id: u32) -> Value {
    json!({"workItemId": id, "fields": {"System.State": "Resolved"}})
}

async fn resolve(client: &Client, id: u32) -> Result<String> {
    Ok(result_text(&client.call_tool("update_work_item", arguments(id)).await?))
}

/// Returns state, resolution, original and revision of a bug.
async fn written(client: &Client, id: u32) -> Result<Value> {
    let call = client.call_tool("get_work_item", json!({"workItemId": id}));
    let bug: Value = call.structured().await?;
    Ok(json!([bug["state"], bug["resolution"], bug["duplicateOf"], bug["rev"]]))
}
