//! Checks that a new handler revision finishes a call of the old one without repeating input
//! requests.

use std::{env, fs, path::PathBuf, process};

use anyhow::{Context, Result};
use outlive::client::{ClientBuilder, input::InputResponse, request::result_text};
use serde_json::{Value, json};

use crate::stage::{
    Era, Stage, answered, answering, expect, names, refusal, round, unexpected_request,
};

const LINKED: &str = "linked octocat at GitHub and clippy at Microsoft";

pub(crate) async fn check(stage: Stage) -> Result<()> {
    match stage.era {
        Era::Modern => upgrade(stage).await,
        // A legacy call stays with the process that started it.
        Era::Legacy => {
            let server = stage.start(&[])?;
            let client = server.connect(user()).await?;
            let done = client.call_tool("link_accounts", json!({})).await?;
            expect(result_text(&done), LINKED)
        }
    }
}

/// Sends round 1 to the old revision and rounds 2 and 3 to the new one. Uses raw requests, because
/// a client finishes a call on one server.
async fn upgrade(stage: Stage) -> Result<()> {
    let keys = KeyFile::new();
    let path = keys.0.to_str().context("the path of the temporary folder is not UTF-8")?;
    let old = stage.start(&["--revision", "1", "--keys", path])?;
    let client = old.connect(user()).await?;
    let asked = round(&client, &call()).await?;
    expect(names(&asked["inputRequests"]), json!(["github_login", "google_login"]))?;
    drop((client, old));

    let second = answered(&call(), &asked, login)?;
    // A process with other keys cannot open the sealed request state.
    let other = stage.start(&[])?;
    let client = other.connect(user()).await?;
    let (_, data) = refusal(client.request("tools/call", &second).raw_result().await)?;
    expect(data["reason"].clone(), "request_state_invalid")?;

    let new = stage.start(&["--revision", "2", "--keys", path])?;
    let client = new.connect(user()).await?;
    let asked = round(&client, &second).await?;
    expect(names(&asked["inputRequests"]), json!(["microsoft_login"]))?;

    let third = answered(&call(), &asked, login)?;
    expect(names(&third["inputResponses"]), json!(["microsoft_login"]))?;
    let done = round(&client, &third).await?;
    expect(done["resultType"].clone(), "complete")?;
    expect(done["content"][0]["text"].clone(), LINKED)
}

fn call() -> Value {
    json!({"name": "link_accounts", "arguments": {}})
}

/// Returns a client builder whose user has all accounts.
fn user() -> ClientBuilder {
    answering(|question, message| {
        login(message).map_or_else(|| unexpected_request(question), InputResponse::accept)
    })
}

fn login(message: &str) -> Option<Value> {
    let login = match message {
        "Enter your GitHub account" => "octocat",
        "Enter your Google account" => "goo",
        "Enter your Microsoft account" => "clippy",
        _ => return None,
    };
    Some(json!({"login": login}))
}

/// Path of a key file, which the first server creates. Deleted on drop.
struct KeyFile(PathBuf);

impl KeyFile {
    fn new() -> Self {
        let name = format!("outlive-rolling-upgrade-{}.key", process::id());
        Self(env::temp_dir().join(name))
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
