//! Emitted content appears in the result once and in order.

use std::time::Duration;

use outlive::server::{
    Durable, Error, Prompt, Resource, Result, Server, State, Tool, durable::Retry,
};
use outlive::wire::ContentBlock;
use serde_json::{Value, json};

use crate::{
    input::dialogue::{
        Approval, Notes, Talk, WIRES, accept, builder, failure_of, logged, refusal_of, texts_of,
    },
    support::pipe::MODERN,
};

fn yes(_: &Value) -> Value {
    accept(json!({"yes": true}))
}

/// Emits inside and outside of steps and scopes.
async fn everywhere(cx: Durable) -> Result<String> {
    cx.emit("1 first of all").await?;
    let step = async |text: &'static str| {
        cx.emit(text).await?;
        Ok(())
    };
    cx.step("a", async || step("2 inside a step").await).await?;
    cx.elicit::<Approval>("first", "First?").await?;
    cx.emit("3 between input requests").await?;
    cx.emit(ContentBlock::text("4 at once")).await?;
    let scope = cx.scope("scope");
    scope.emit("5 in a scope").await?;
    scope.step("b", async || scope.emit("6 in its step").await).await?;
    cx.elicit::<Approval>("second", "Second?").await?;
    cx.emit("7 last").await?;
    Ok("8 returned".into())
}

/// Emits in a step that fails at first and that the handler repeats.
async fn by_hand(cx: Durable, notes: State<Notes>) -> Result<String> {
    let attempt = async || {
        notes.note("try");
        cx.emit("begun").await?;
        match notes.count() {
            1 => Err(Error::new("not yet")),
            _ => cx.emit("done").await,
        }
    };
    if cx.step("flaky", attempt).await.is_err() {
        cx.step("flaky", attempt).await?;
    }
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok("returned".into())
}

/// The same with a retry policy.
async fn by_policy(cx: Durable, notes: State<Notes>) -> Result<String> {
    let attempt = async |_| {
        notes.note("try");
        cx.emit("begun").await?;
        match notes.count() {
            1 | 2 => Err(Error::new("not yet")),
            _ => cx.emit("done").await,
        }
    };
    cx.step_retry("flaky", Retry::attempts(5), attempt).await?;
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok("returned".into())
}

/// Emits another text in every run.
async fn fickle(cx: Durable, notes: State<Notes>) -> Result<String> {
    notes.note("run");
    cx.emit(format!("run {}", notes.count())).await?;
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok("returned".into())
}

/// Parallel branches that emit.
async fn branches(cx: Durable) -> Result<String> {
    let branch = async |name: &'static str, seconds| {
        let scope = cx.scope(name);
        scope.emit(format!("{name} 1")).await?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        scope.emit(format!("{name} 2")).await
    };
    let (slow, fast) = tokio::join!(branch("slow", 2), branch("fast", 1));
    slow?;
    fast?;
    cx.elicit::<Approval>("go", "Go?").await?;
    cx.scope("fast").emit("fast 3").await?;
    Ok("returned".into())
}

async fn failing(cx: Durable) -> Result<String> {
    cx.emit("half of it").await?;
    cx.elicit::<Approval>("go", "Go?").await?;
    Err(Error::new("the rest is lost"))
}

async fn elsewhere(cx: Durable) -> Result<String> {
    cx.emit("nowhere").await?;
    Ok("never".into())
}

fn server(notes: &Notes) -> Server {
    let tools = [
        Tool::new("everywhere", everywhere),
        Tool::new("by_hand", by_hand),
        Tool::new("by_policy", by_policy),
        Tool::new("fickle", fickle),
        Tool::new("branches", branches),
        Tool::new("failing", failing),
    ];
    builder(tools)
        .state(notes.clone())
        .prompt(Prompt::new("elsewhere", elsewhere))
        .resource(Resource::new("ask://elsewhere", "elsewhere", elsewhere))
        .build()
        .unwrap()
}

async fn play(version: &str, tool: &str) -> Value {
    let server = server(&Notes::default());
    Talk::open(&server, version).await.call(tool, yes).await.answer
}

#[tokio::test(start_paused = true)]
async fn emitted_content_precedes_returned_content_once_and_in_order() {
    for version in WIRES {
        let answer = play(version, "everywhere").await;
        let expected = [
            "1 first of all",
            "2 inside a step",
            "3 between input requests",
            "4 at once",
            "5 in a scope",
            "6 in its step",
            "7 last",
            "8 returned",
        ];
        assert_eq!(texts_of(&answer), expected, "{version}");
    }
}

// A segment is identified by its step and its ordinal in the step.
#[tokio::test(start_paused = true)]
async fn retried_step_emits_its_content_once() {
    for version in WIRES {
        for tool in ["by_hand", "by_policy"] {
            let answer = play(version, tool).await;
            assert_eq!(texts_of(&answer), ["begun", "done", "returned"], "{tool} on {version}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn emitted_content_differing_on_replay_logs_warning_and_keeps_first() {
    let (log, _guard) = logged();
    let answer = play(MODERN, "fickle").await;
    assert_eq!(texts_of(&answer), ["run 1", "returned"]);
    let log = log.take();
    let warned = log.iter().find(|line| line.starts_with("WARN") && line.contains("segment"));
    assert!(warned.is_some(), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn parallel_branches_keep_order_of_first_emit() {
    for version in WIRES {
        let answer = play(version, "branches").await;
        let expected = ["slow 1", "fast 1", "fast 2", "slow 2"];
        assert_eq!(texts_of(&answer)[..4], expected, "{version}");
        assert_eq!(texts_of(&answer).last(), Some(&"returned"), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn failing_tool_keeps_emitted_content() {
    for version in WIRES {
        let answer = play(version, "failing").await;
        assert_eq!(failure_of(&answer), "the rest is lost");
        assert_eq!(texts_of(&answer), ["half of it", "the rest is lost"], "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn emit_in_prompt_or_resource_fails() {
    for version in WIRES {
        let mut talk = Talk::open(&server(&Notes::default()), version).await;
        let asked = |asked: &Value| panic!("unexpected input request: {asked}");
        let prompt = talk.request("prompts/get", json!({"name": "elsewhere"}), asked).await;
        let resource =
            talk.request("resources/read", json!({"uri": "ask://elsewhere"}), asked).await;
        // The log has the cause; the response does not.
        assert_eq!(refusal_of(&prompt.answer), (-32603, "internal error"));
        assert_eq!(refusal_of(&resource.answer), (-32603, "internal error"));
    }
}
