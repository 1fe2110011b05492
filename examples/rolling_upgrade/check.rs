//! A call that began on the old revision is finished by the new one, and nothing is asked twice.

use std::{env, fs, path::PathBuf, process};

use anyhow::{Context, Result};
use outlive::client::{ClientBuilder, input::InputResponse, request::result_text};
use serde_json::{Value, json};

use crate::stage::{
    Era, Stage, answered, answering, expect, names, nobody_expected, refusal, round,
};

const LINKED: &str = "linked octocat at GitHub and clippy at Microsoft";

pub(crate) async fn check(stage: Stage) -> Result<()> {
    match stage.era {
        Era::Modern => upgrade(stage).await,
        // Here a call stays with the process that began it: there is nothing to take along.
        Era::Legacy => {
            let server = stage.start(&[])?;
            let client = server.connect(user()).await?;
            let done = client.call_tool("link_accounts", json!({})).await?;
            expect(result_text(&done), LINKED)
        }
    }
}

/// Round 1 goes to the old revision, rounds 2 and 3 to the new one: made by hand, since a client
/// brings a call to its end where it began it.
async fn upgrade(stage: Stage) -> Result<()> {
    let keys = KeyFile::new();
    let path = keys.0.to_str().context("the temporary folder has no plain name")?;
    let old = stage.start(&["--revision", "1", "--keys", path])?;
    let client = old.connect(user()).await?;
    let asked = round(&client, &call()).await?;
    expect(names(&asked["inputRequests"]), json!(["github_login", "google_login"]))?;
    drop((client, old));

    let second = answered(&call(), &asked, login)?;
    // A process that has other keys cannot read what the old one has sealed.
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

/// A user with an account everywhere.
fn user() -> ClientBuilder {
    answering(|question, message| {
        login(message).map_or_else(|| nobody_expected(question), InputResponse::accept)
    })
}

fn login(message: &str) -> Option<Value> {
    let login = match message {
        "Who are you at GitHub?" => "octocat",
        "Who are you at Google?" => "goo",
        "Who are you at Microsoft?" => "clippy",
        _ => return None,
    };
    Some(json!({"login": login}))
}

/// A file for keys, which the first server to be given it makes.
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
