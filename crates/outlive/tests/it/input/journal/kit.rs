//! The test kit: scripted input responses, simulated crashes, and errors with a remedy.

use std::time::Duration;

use outlive::{
    server::{Args, Durable, Error, Result, Server, State, Tool, durable::Retry},
    testing::{TestOutcome, TestServer},
    wire::{CreateMessageRequestParams, Role, SamplingMessage},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::input::dialogue::{Approval, Notes, PausedClock};

#[derive(Deserialize, JsonSchema)]
struct Deploy {
    repo: String,
    regions: Vec<String>,
}

/// A deterministic handler.
async fn deploy(
    cx: Durable,
    Args(Deploy { repo, regions }): Args<Deploy>,
    notes: State<Notes>,
) -> Result<String> {
    let image: String = cx
        .step("build", async || {
            notes.note("build");
            Ok(format!("{repo}:1"))
        })
        .await?;
    let approval: Approval = cx.elicit("approve", format!("Deploy {image}?")).await?;
    if !approval.yes {
        return Ok("nothing happened".into());
    }
    for region in &regions {
        cx.step_retry(("push", region), Retry::attempts(2), async |_| {
            notes.note(format!("push {region}"));
            Ok(())
        })
        .await?;
        cx.emit(format!("{region} done")).await?;
    }
    cx.sleep("soak", Duration::from_secs(600)).await?;
    Ok(format!("{image} is out"))
}

/// Uses another key in every run.
async fn fickle(cx: Durable, notes: State<Notes>) -> Result<String> {
    notes.note("run");
    let way = notes.count();
    cx.step(("way", way), async || Ok(1)).await?;
    cx.elicit::<Approval>("approve", "Deploy?").await?;
    Ok("done".into())
}

/// Returns another text in every run.
async fn talkative(cx: Durable, notes: State<Notes>) -> Result<String> {
    notes.note("run");
    cx.step("build", async || Ok(1)).await?;
    Ok(format!("run {}", notes.count()))
}

async fn all_kinds(cx: Durable) -> Result<String> {
    let params = CreateMessageRequestParams {
        messages: vec![SamplingMessage::text(Role::User, "Hello?")],
        max_tokens: 10,
        ..Default::default()
    };
    let model = cx.sample("sample", params).await?.model;
    let roots = cx.roots("roots").await?.len();
    cx.elicit_url(("visit", 1), "Go", "https://example.com").await?;
    Ok(format!("{model} {roots}"))
}

async fn failing(cx: Durable) -> Result<String> {
    cx.step("build", async || Err(Error::new("the disk is full").permanent())).await
}

fn stage(notes: &Notes) -> TestServer {
    let builder = Server::builder("test", "1")
        .clock(PausedClock::new())
        .state(notes.clone())
        .tool(Tool::new("deploy", deploy))
        .tool(Tool::new("fickle", fickle))
        .tool(Tool::new("talkative", talkative))
        .tool(Tool::new("all_kinds", all_kinds))
        .tool(Tool::new("failing", failing));
    TestServer::new(builder).unwrap()
}

fn arguments() -> serde_json::Value {
    json!({"repo": "shop", "regions": ["eu", "us"]})
}

fn texts(played: &TestOutcome) -> Vec<String> {
    played.text().lines().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn kit_responds_to_input_requests() {
    let notes = Notes::default();
    let stage = stage(&notes);
    let scene = stage.call_tool("deploy", arguments()).accept("approve", json!({"yes": true}));
    let played = scene.run().await.unwrap();
    assert_eq!(texts(&played), ["eu done", "us done", "shop:1 is out"]);
    assert_eq!((&played.input_requests[..], played.rounds), (&["approve".to_owned()][..], 1));
    assert_eq!(notes.take(), ["build", "push eu", "push us"]);
    let no = stage.call_tool("deploy", arguments()).accept("approve", json!({"yes": false}));
    assert_eq!(no.run().await.unwrap().text(), "nothing happened");
}

#[tokio::test(start_paused = true)]
async fn kit_declines_and_responds_to_every_kind_of_input() {
    let stage = stage(&Notes::default());
    let declined = stage.call_tool("deploy", arguments()).decline("approve").run().await.unwrap();
    assert_eq!(declined.text(), "the user declined the input request `approve`");
    assert_eq!(declined.result.is_error, Some(true));
    let dismissed = stage.call_tool("deploy", arguments()).cancel("approve").run().await.unwrap();
    assert_eq!(dismissed.text(), "the user cancelled the input request `approve`");
    let model =
        json!({"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "parrot"});
    let played = stage
        .call_tool("all_kinds", json!({}))
        .respond("sample", model)
        .respond("roots", json!({"roots": [{"uri": "file:///"}]}))
        .accept(("visit", 1), json!({}))
        .crash_after_each()
        .await
        .unwrap();
    assert_eq!(played.text(), "parrot 1");
    assert_eq!(played.input_requests, ["sample", "roots", "visit/1"]);
    assert_eq!(played.rounds, 3);
    let failed = stage.call_tool("failing", json!({})).crash_after_each().await.unwrap();
    assert_eq!((failed.text(), failed.result.is_error), ("the disk is full".into(), Some(true)));
}

#[tokio::test(start_paused = true)]
async fn kit_crashes_after_named_entry_and_replays() {
    let notes = Notes::default();
    let stage = stage(&notes);
    let scene = stage.call_tool("deploy", arguments()).accept("approve", json!({"yes": true}));
    let places = ["build", "approve", "soak"];
    for place in places {
        let played = scene.clone().crash_after(place).await.unwrap();
        assert_eq!(texts(&played), ["eu done", "us done", "shop:1 is out"], "{place}");
        assert_eq!(notes.take(), ["build", "push eu", "push us"], "{place}: each step ran once");
    }
    let played = scene.clone().crash_after(("push", "eu")).await.unwrap();
    assert_eq!(texts(&played), ["eu done", "us done", "shop:1 is out"]);
    assert_eq!(notes.take(), ["build", "push eu", "push us"]);
}

#[tokio::test(start_paused = true)]
async fn deterministic_handler_survives_crash_after_each_entry() {
    let notes = Notes::default();
    let stage = stage(&notes);
    let scene = stage.call_tool("deploy", arguments()).accept("approve", json!({"yes": true}));
    let played = scene.crash_after_each().await.unwrap();
    assert_eq!(texts(&played), ["eu done", "us done", "shop:1 is out"]);
    // Three steps, one input response, one timer and two segments make seven crashes, plus one run
    // without a crash.
    let noted = notes.take();
    for step in ["build", "push eu", "push us"] {
        let count = noted.iter().filter(|note| *note == step).count();
        assert_eq!(count, 8, "{step} ran once per simulated call: {noted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn kit_reports_handler_not_reaching_recorded_entry() {
    let stage = stage(&Notes::default());
    let scene = stage.call_tool("fickle", json!({})).accept("approve", json!({"yes": true}));
    let flop = scene.run().await.unwrap_err().to_string();
    assert!(flop.contains("did not reach these journal entries: way/1"), "{flop}");
    assert!(flop.contains("make the handler deterministic"), "{flop}");
}

#[tokio::test(start_paused = true)]
async fn kit_reports_result_differing_after_crash() {
    let stage = stage(&Notes::default());
    let flop =
        stage.call_tool("talkative", json!({})).crash_after_each().await.unwrap_err().to_string();
    assert!(
        flop.contains("run 1") && flop.contains("run 2") && flop.contains("same journal"),
        "{flop}"
    );
}

/// Records an ID and a time, which differ between calls, in steps.
async fn ticket(cx: Durable, notes: State<Notes>) -> Result<String> {
    let number = cx
        .step("draw", async || {
            notes.note("draw");
            Ok(notes.count())
        })
        .await?;
    cx.step("print", async || Ok(())).await?;
    Ok(format!("ticket {number} of {}", cx.idempotency_key("draw")))
}

#[tokio::test(start_paused = true)]
async fn kit_accepts_values_recorded_in_steps() {
    let notes = Notes::default();
    let builder = Server::builder("test", "1").state(notes.clone());
    let stage = TestServer::new(builder.tool(Tool::new("ticket", ticket))).unwrap();
    let played = stage.call_tool("ticket", json!({})).crash_after_each().await.unwrap();
    assert!(played.text().starts_with("ticket 1 of "), "{}", played.text());
    assert_eq!(notes.take(), ["draw", "draw", "draw"], "once per simulated call");
}

#[tokio::test(start_paused = true)]
async fn kit_reports_unscripted_input_request_with_remedy() {
    let stage = stage(&Notes::default());
    let flop = stage.call_tool("deploy", arguments()).run().await.unwrap_err().to_string();
    assert!(flop.contains("`approve`") && flop.contains("Deploy shop:1?"), "{flop}");
    assert!(flop.contains("accept("), "the remedy names `accept`: {flop}");
    // An invalid response is requested again, and the kit reports the reason.
    let scene = stage.call_tool("deploy", arguments()).accept("approve", json!({"yes": "perhaps"}));
    let flop = scene.run().await.unwrap_err().to_string();
    assert!(flop.contains("`yes` must be true or false"), "{flop}");
}

#[tokio::test(start_paused = true)]
async fn kit_crash_after_unknown_key_lists_recorded_keys() {
    let stage = stage(&Notes::default());
    let scene = stage.call_tool("deploy", arguments()).accept("approve", json!({"yes": false}));
    let flop = scene.crash_after("bulid").await.unwrap_err().to_string();
    assert!(flop.contains("`bulid` was never recorded"), "{flop}");
    assert!(flop.contains("build") && flop.contains("approve"), "the recorded keys: {flop}");
}

#[tokio::test(start_paused = true)]
async fn kit_reports_differing_result_with_remedy() {
    let stage = stage(&Notes::default());
    let flop =
        stage.call_tool("talkative", json!({})).crash_after_each().await.unwrap_err().to_string();
    assert!(flop.contains("step"), "the remedy names a step: {flop}");
}

#[tokio::test(start_paused = true)]
async fn kit_reports_protocol_error_of_call() {
    let stage = stage(&Notes::default());
    let flop = stage.call_tool("deplyo", json!({})).run().await.unwrap_err().to_string();
    assert!(flop.contains("unknown tool `deplyo`; did you mean `deploy`?"), "{flop}");
    let scene = stage.call_tool("deploy", arguments()).capabilities(json!({"sampling": {}}));
    let flop = scene.run().await.unwrap_err().to_string();
    assert!(flop.contains(r#"{"elicitation":{"form":{}}}"#), "{flop}");
}
