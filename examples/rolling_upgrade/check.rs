//! A call that began on the old revision is finished by the new one, and nothing is asked twice.

use std::{env, fs, path::PathBuf, process};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::client::{Client, Era, answered, expect, names};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    let done = match client.era() {
        Era::Modern => upgrade(client)?,
        // Here a call stays with the process that began it: there is nothing to take along.
        Era::Legacy => client.call_answering("tools/call", call(), user)?,
    };
    expect(&done["content"][0]["text"], &json!("linked octocat at GitHub and clippy at Microsoft"))
}

/// Round 1 goes to the old revision, rounds 2 and 3 to the new one.
fn upgrade(client: &mut Client) -> Result<Value> {
    let keys = KeyFile::new();
    let path = keys.0.to_str().context("the temporary folder has no plain name")?;
    let mut old = client.another(&["--revision", "1", "--keys", path])?;
    let asked = old.round("tools/call", call())?;
    expect(&names(&asked["inputRequests"]), &json!(["github_login", "google_login"]))?;
    drop(old);

    let second = answered(&call(), &asked, user)?;
    // A process that has other keys cannot read what the old one has sealed.
    let refused = client.refused("tools/call", second.clone())?;
    expect(&refused["data"]["reason"], &json!("request_state_invalid"))?;

    let mut new = client.another(&["--revision", "2", "--keys", path])?;
    let asked = new.round("tools/call", second)?;
    expect(&names(&asked["inputRequests"]), &json!(["microsoft_login"]))?;

    let third = answered(&call(), &asked, user)?;
    expect(&names(&third["inputResponses"]), &json!(["microsoft_login"]))?;
    let done = new.round("tools/call", third)?;
    expect(&done["resultType"], &json!("complete"))?;
    Ok(done)
}

fn call() -> Value {
    json!({"name": "link_accounts", "arguments": {}})
}

/// A user with an account everywhere.
fn user(question: &Value) -> Result<Value> {
    let login = match question["message"].as_str() {
        Some("Who are you at GitHub?") => "octocat",
        Some("Who are you at Google?") => "goo",
        Some("Who are you at Microsoft?") => "clippy",
        _ => bail!("nobody expected to be asked {question}"),
    };
    Ok(json!({"action": "accept", "content": {"login": login}}))
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
