//! Both questions are asked where they should be, and a process that is killed in between costs
//! nothing that was done.

use std::{env, fs, path::PathBuf, process};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::client::{Begun, Client, Ended, Era, Place, expect};

pub(crate) fn check(client: &mut Client) -> Result<()> {
    let image = format!("shop:7-{}", client.process());
    let mut asked = Vec::new();
    let Ended { task, result } = client.see_through(call(), |place, question| {
        asked.push(place);
        user(question)
    })?;
    ensure!(task.is_some(), "it was no task");
    finished(&result, &image)?;
    // Before there was a task, and inside of it; where the caller asks for a task, that is both.
    let places = match client.era() {
        Era::Modern => [Place::Call, Place::Task],
        Era::Legacy => [Place::Task, Place::Task],
    };
    ensure!(asked == places, "asked in {asked:?}");

    // Callers that hold no tasks use the same tool: they wait.
    let inline = client.call_answering("tools/call", call(), user)?;
    finished(&inline, &image)?;

    outlive(client)
}

/// Begins in one process, which is killed while the task waits for its user, and ends in another.
fn outlive(client: &Client) -> Result<()> {
    let folder = Folder::new()?;
    let store = folder.0.join("tasks.db");
    let arguments = ["--store", store.to_str().context("the folder has no plain name")?];

    let mut first = client.another(&arguments)?;
    let Begun::Task(task) = first.begin(call(), user)? else { bail!("it was no task") };
    let left = |question: &Value| match is_approval(question) {
        true => Ok(None),
        false => user(question).map(Some),
    };
    ensure!(first.follow(&task, left)?.is_none(), "it did not ask");
    let image = format!("shop:7-{}", first.process());
    drop(first); // kill -9

    let mut second = client.another(&arguments)?;
    let mut asked = Vec::new();
    let result = second.follow(&task, |question| {
        asked.push(question["message"].clone());
        user(question).map(Some)
    })?;
    expect(&json!(asked), &json!([format!("{image} is built. Roll it out to staging?")]))?;
    let text = &result.context("it did not end")?["content"][0]["text"];
    expect(text, &json!(format!("{image} is in staging")))
}

fn finished(result: &Value, image: &str) -> Result<()> {
    expect(&result["content"][0]["text"], &json!(format!("{image} is in staging")))
}

fn call() -> Value {
    json!({"name": "release", "arguments": {"version": "7"}})
}

/// A user who goes through with it.
fn user(question: &Value) -> Result<Value> {
    let content = match question["message"].as_str().unwrap_or_default() {
        "Where should it go?" => json!({"environment": "staging"}),
        _ if is_approval(question) => json!({"yes": true}),
        _ => bail!("nobody expected to be asked {question}"),
    };
    Ok(json!({"action": "accept", "content": content}))
}

fn is_approval(question: &Value) -> bool {
    question["message"].as_str().is_some_and(|text| text.ends_with("Roll it out to staging?"))
}

/// A folder for a store, gone with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let folder = env::temp_dir().join(format!("outlive-release-{}", process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
