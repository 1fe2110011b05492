//! Checks which calls become tasks, and where each tool requests input.

use std::{
    mem,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::{Result, ensure};
use outlive::client::{
    Client,
    input::{InputOrigin, InputResponse, PendingInput},
    request::result_text,
};
use serde_json::{Value, json};

use crate::stage::{Era, Stage, answering, expect, refusal, unexpected_request};

/// Place where input was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// During the call: in a round, or on the call's stream.
    Call,
    /// Inside the task.
    Task,
}

impl Place {
    pub(crate) fn of(origin: &InputOrigin) -> Self {
        match origin {
            InputOrigin::Task { .. } | InputOrigin::Request { task: Some(_) } => Self::Task,
            _ => Self::Call,
        }
    }
}

type Asked = Arc<Mutex<Vec<Place>>>;

pub(crate) async fn check(stage: Stage) -> Result<()> {
    let is_modern = stage.era == Era::Modern;
    let asked = Asked::default();
    let places = Arc::clone(&asked);
    let server = stage.start(&[])?;
    let builder = answering(move |question, message| {
        places.lock().unwrap_or_else(PoisonError::into_inner).push(Place::of(&question.origin));
        user(question, message)
    });
    let client = server.connect(builder).await?;
    let see = async |tool: &str, arguments: Value, text: &str, is_task, places: &[Place]| {
        see(&client, &asked, (tool, &arguments), text, is_task, places).await
    };
    // On 2025-11-25 the client requests tasks, so these calls are tasks from the start.
    let first = if is_modern { Place::Call } else { Place::Task };
    see("render", json!({"frames": 1}), "1 frames", !is_modern, &[]).await?;
    see("render", json!({"frames": 10}), "10 frames", true, &[]).await?;
    see("brew", json!({}), "a cup of tea", true, &[first]).await?;
    see("clean_up", json!({}), "2 files deleted", true, &[Place::Task]).await?;
    see("greet", json!({}), "Hello, Ada!", false, &[Place::Call]).await?;

    // Without task support the call waits, and a tool that requires a task returns an error.
    let waited = client.call_tool("render", json!({"frames": 10})).inline().await?;
    expect(result_text(&waited), "10 frames")?;
    let (code, _) = refusal(client.call_tool("clean_up", json!({})).inline().await)?;
    expect(code, if is_modern { -32021 } else { -32601 })
}

/// Calls a tool with a client that supports tasks. Checks the result, whether the call became a
/// task, and where the tool requested input.
async fn see(
    client: &Client,
    asked: &Asked,
    (tool, arguments): (&str, &Value),
    text: &str,
    is_task: bool,
    places: &[Place],
) -> Result<()> {
    let mut handle = client.start_tool(tool, arguments).await?;
    let is_one = handle.task_id().is_some();
    expect(result_text(&handle.wait().await?), text)?;
    ensure!(is_one == is_task, "{tool}: is a task: {is_one}");
    let asked = mem::take(&mut *asked.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(asked == places, "{tool}: input requested in {asked:?}");
    Ok(())
}

fn user(question: &PendingInput, message: &str) -> InputResponse {
    InputResponse::accept(match message {
        "What would you like?" => json!({"drink": "tea"}),
        "Delete a.log, b.log?" => json!({"yes": true}),
        "Enter your name" => json!({"name": "Ada"}),
        _ => return unexpected_request(question),
    })
}
