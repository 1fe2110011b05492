//! Tasks that another handler revision continues.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::{
    Form,
    operator::Operator,
    server::{Durable, Result, Tool, durable::ResumePolicy, tasks::TaskPolicy},
    store::TaskId,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::to_raw_value};

use super::super::{
    stage::{Process, Stage, answer, parked, until_asked},
    world::{start, until, until_kept},
};
use crate::support::{
    fail_points::FailPoints,
    pipe::{Pipe, text},
};

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

#[derive(Serialize, Deserialize)]
struct Image {
    name: String,
}

/// The first revision: the image is a string.
async fn first(cx: Durable) -> Result<String> {
    let image: String = cx.step("build", async || Ok("shop".to_owned())).await?;
    let sure: Sure = cx.elicit("sure", "Push?").await?;
    Ok(format!("first: {image} {}", sure.yes))
}

/// The second revision: the image is an object, and a push count follows.
async fn second(cx: Durable) -> Result<String> {
    let image: Image = cx.step("build", async || Ok(Image { name: "again".to_owned() })).await?;
    let sure: Sure = cx.elicit("sure", "Push?").await?;
    let pushed: u32 = cx.step("push", async || Ok(7)).await?;
    let all: Sure = cx.elicit("all", "Everywhere?").await?;
    Ok(format!("second: {} {} {pushed} {}", image.name, sure.yes, all.yes))
}

/// The third revision: the push is an object too.
async fn third(cx: Durable) -> Result<String> {
    let image: Image = cx.step("build", async || Ok(Image { name: "again".to_owned() })).await?;
    let sure: Sure = cx.elicit("sure", "Push?").await?;
    let pushed: Image = cx.step("push", async || Ok(Image { name: "again".to_owned() })).await?;
    let all: Sure = cx.elicit("all", "Everywhere?").await?;
    Ok(format!("third: {} {} {} {}", image.name, sure.yes, pushed.name, all.yes))
}

/// Revision and key of each migrated entry.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Adds a migration from strings and numbers to objects.
fn migrating(tool: Tool, asked: &Asked) -> Tool {
    let asked = Arc::clone(asked);
    tool.migrate_journal(move |from, key, value| {
        asked.lock().unwrap().push((from.to_owned(), key.to_owned()));
        let value: Value = serde_json::from_str(value.get()).unwrap();
        match (key, &value) {
            ("build" | "push", Value::String(_) | Value::Number(_)) => {
                let name = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                (key == "build" || from == "2")
                    .then(|| to_raw_value(&json!({"name": name})).unwrap())
            }
            _ => None,
        }
    })
}

/// Runs a process with this handler until `test` returns.
fn process<T>(stage: &Stage, tool: Tool, test: impl AsyncFnOnce(&mut Pipe) -> T) -> T {
    let process = Process::start();
    let seen = process.run(async {
        let points = FailPoints::over(Arc::clone(&stage.store) as _);
        let server = stage.builder(&points, |config| config);
        let server = server.tool(tool.task(TaskPolicy::Always)).build().unwrap();
        test(&mut Pipe::open(&server)).await
    });
    process.kill(&stage.store);
    seen
}

/// Starts a task with this handler that waits for input.
fn begun(stage: &Stage, tool: Tool) -> String {
    process(stage, tool, async |pipe| {
        let id = start(pipe, "ship", json!({})).await;
        until_asked(pipe, &id, &["sure"]).await;
        parked().await;
        id
    })
}

fn tool_of(revision: &str) -> Tool {
    match revision {
        "1" => Tool::new("ship", first),
        "2" => Tool::new("ship", second),
        _ => Tool::new("ship", third),
    }
    .handler_revision(revision)
}

/// Asserts that a quarantined task fails when its quarantine ends.
async fn is_kept_and_then_fails(stage: &Stage, pipe: &mut Pipe, id: &str) -> Value {
    stage.store.advance_clock(Duration::from_secs(6 * 24 * 3600));
    parked().await;
    until_kept(pipe, id).await;
    stage.store.advance_clock(Duration::from_secs(2 * 24 * 3600));
    let failed = until(pipe, id, "failed").await;
    assert_eq!(failed["error"]["code"], -32603);
    failed["error"]["message"].clone()
}

// K-26
#[test]
fn journal_entries_are_migrated_from_their_own_revision() {
    let (stage, asked) = (Stage::new(), Asked::default());
    let id = begun(&stage, tool_of("1"));
    process(&stage, migrating(tool_of("2"), &asked), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        until_asked(pipe, &id, &["all"]).await;
        parked().await;
    });
    let from = |revision: &str, key: &str| (revision.to_owned(), key.to_owned());
    assert_eq!(*asked.lock().unwrap(), [from("1", "build"), from("1", "sure")]);
    asked.lock().unwrap().clear();
    let done = process(&stage, migrating(tool_of("3"), &asked), async |pipe| {
        answer(pipe, &id, &[("all", true)]).await;
        until(pipe, &id, "completed").await
    });
    assert_eq!(text(&done["result"]), "third: shop true 7 true");
    let seen = asked.lock().unwrap().clone();
    let each = [("2", "all"), ("1", "build"), ("2", "push"), ("1", "sure")];
    assert_eq!(seen, each.map(|(revision, key)| from(revision, key)));
}

// K-26
#[test]
fn entries_recorded_by_current_revision_are_not_migrated() {
    let (stage, asked) = (Stage::new(), Asked::default());
    let id = begun(&stage, tool_of("1"));
    process(&stage, migrating(tool_of("2"), &asked), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        until_asked(pipe, &id, &["all"]).await;
        parked().await;
    });
    asked.lock().unwrap().clear();
    // The same revision does not migrate its own entries.
    let done = process(&stage, migrating(tool_of("2"), &asked), async |pipe| {
        answer(pipe, &id, &[("all", false)]).await;
        until(pipe, &id, "completed").await
    });
    assert_eq!(text(&done["result"]), "second: shop true 7 false");
    let from = |key: &str| ("1".to_owned(), key.to_owned());
    assert_eq!(*asked.lock().unwrap(), [from("build"), from("sure")]);
}

// K-26
#[test]
fn task_with_incompatible_journal_is_quarantined_and_fails_with_key() {
    let stage = Stage::new();
    let id = begun(&stage, tool_of("1"));
    process(&stage, tool_of("2"), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        let why = until_kept(pipe, &id).await;
        assert!(why.contains("`build`"), "{why}");
        assert_eq!(is_kept_and_then_fails(&stage, pipe, &id).await, why);
    });
}

// K-26
#[test]
fn quarantined_task_resumes_with_compatible_revision() {
    let stage = Stage::new();
    let id = begun(&stage, tool_of("1"));
    process(&stage, tool_of("2"), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        until_kept(pipe, &id).await;
    });
    // The journal is unchanged and contains the input response.
    let done = process(&stage, tool_of("1"), async |pipe| {
        until_kept(pipe, &id).await;
        let operator = Operator::new(Arc::clone(&stage.store) as _);
        operator.retry(&TaskId::new(id.clone())).await.unwrap();
        until(pipe, &id, "completed").await
    });
    assert_eq!(text(&done["result"]), "first: shop true");
}

#[test]
fn handler_ignoring_incompatible_entry_is_still_quarantined() {
    async fn stubborn(cx: Durable) -> Result<String> {
        match cx.step::<Image, _>("build", async || Ok(Image { name: "new".to_owned() })).await {
            Ok(image) => Ok(image.name),
            Err(_) => Ok("built once more".to_owned()),
        }
    }
    let stage = Stage::new();
    let id = begun(&stage, tool_of("1"));
    process(&stage, Tool::new("ship", stubborn), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        until_kept(pipe, &id).await;
    });
}

// K-26
#[test]
fn same_revision_policy_quarantines_task_under_other_revision() {
    let same = |revision: &str| tool_of(revision).resume_policy(ResumePolicy::SameRevision);
    let stage = Stage::new();
    let id = begun(&stage, same("1"));
    process(&stage, same("2"), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        let why = until_kept(pipe, &id).await;
        assert!(why.contains("incompatible handler revision") && why.contains("`1`"), "{why}");
        assert_eq!(is_kept_and_then_fails(&stage, pipe, &id).await, why);
    });
    // Its own revision continues the task, and so does a revision with a migration.
    let stage = Stage::new();
    let id = begun(&stage, same("1"));
    process(&stage, same("1"), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        assert_eq!(text(&until(pipe, &id, "completed").await["result"]), "first: shop true");
    });
    let stage = Stage::new();
    let id = begun(&stage, same("1"));
    process(&stage, migrating(same("2"), &Asked::default()), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        until_asked(pipe, &id, &["all"]).await;
    });
}
