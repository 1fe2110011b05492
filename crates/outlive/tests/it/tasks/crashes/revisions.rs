//! Tasks that another version of their handler goes on with.

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

/// The first version: an image is a name.
async fn first(cx: Durable) -> Result<String> {
    let image: String = cx.step("build", async || Ok("shop".to_owned())).await?;
    let sure: Sure = cx.elicit("sure", "Push?").await?;
    Ok(format!("first: {image} {}", sure.yes))
}

/// The second: it has a name, and is pushed so many times.
async fn second(cx: Durable) -> Result<String> {
    let image: Image = cx.step("build", async || Ok(Image { name: "again".to_owned() })).await?;
    let sure: Sure = cx.elicit("sure", "Push?").await?;
    let pushed: u32 = cx.step("push", async || Ok(7)).await?;
    let all: Sure = cx.elicit("all", "Everywhere?").await?;
    Ok(format!("second: {} {} {pushed} {}", image.name, sure.yes, all.yes))
}

/// The third: what was pushed has a name, too.
async fn third(cx: Durable) -> Result<String> {
    let image: Image = cx.step("build", async || Ok(Image { name: "again".to_owned() })).await?;
    let sure: Sure = cx.elicit("sure", "Push?").await?;
    let pushed: Image = cx.step("push", async || Ok(Image { name: "again".to_owned() })).await?;
    let all: Sure = cx.elicit("all", "Everywhere?").await?;
    Ok(format!("third: {} {} {} {}", image.name, sure.yes, pushed.name, all.yes))
}

/// What a migration was asked for: the revision and the key.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// Gives names to what had none.
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

/// Runs a process that has this version of the tool, until the test has seen what it wants.
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

/// A task of the first version that waits for an answer.
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

/// For as long as what cannot go on is kept for an operator, and a little longer: then it fails.
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
fn what_each_version_has_recorded_is_brought_up_to_date_from_that_version() {
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
fn what_a_version_has_brought_up_to_date_is_not_its_own_and_what_it_records_is() {
    let (stage, asked) = (Stage::new(), Asked::default());
    let id = begun(&stage, tool_of("1"));
    process(&stage, migrating(tool_of("2"), &asked), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        until_asked(pipe, &id, &["all"]).await;
        parked().await;
    });
    asked.lock().unwrap().clear();
    // The same version again: its own records are left alone.
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
fn a_task_whose_records_cannot_be_read_is_kept_and_fails_with_the_key() {
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
fn a_task_whose_records_could_not_be_read_goes_on_under_a_version_that_can() {
    let stage = Stage::new();
    let id = begun(&stage, tool_of("1"));
    process(&stage, tool_of("2"), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        until_kept(pipe, &id).await;
    });
    // What was recorded is as it was, and the answer is there.
    let done = process(&stage, tool_of("1"), async |pipe| {
        until_kept(pipe, &id).await;
        let operator = Operator::new(Arc::clone(&stage.store) as _);
        operator.retry(&TaskId::new(id.clone())).await.unwrap();
        until(pipe, &id, "completed").await
    });
    assert_eq!(text(&done["result"]), "first: shop true");
}

#[test]
fn a_handler_makes_nothing_else_of_what_it_cannot_read() {
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
fn a_task_that_only_its_own_version_may_go_on_with_is_kept_under_another() {
    let same = |revision: &str| tool_of(revision).resume_policy(ResumePolicy::SameRevision);
    let stage = Stage::new();
    let id = begun(&stage, same("1"));
    process(&stage, same("2"), async |pipe| {
        answer(pipe, &id, &[("sure", true)]).await;
        let why = until_kept(pipe, &id).await;
        assert!(why.contains("incompatible handler revision") && why.contains("`1`"), "{why}");
        assert_eq!(is_kept_and_then_fails(&stage, pipe, &id).await, why);
    });
    // Its own goes on, and so does one that can read what it has left.
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
