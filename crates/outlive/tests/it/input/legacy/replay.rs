//! `replay_on_input`: the handler runs again after every input response, unnoticed by the client.

use std::time::Duration;

use outlive::server::{Durable, Result, Server, State, Tool};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{Approval, Notes, Talk, accept, builder, failure_of, text_of, texts_of},
    support::pipe::Pipe,
};

async fn deploy(cx: Durable, notes: State<Notes>) -> Result<String> {
    notes.note("run");
    cx.emit("building").await?;
    let image: String = cx
        .step("build", async || {
            notes.note("build");
            Ok("image".to_owned())
        })
        .await?;
    let approval: Approval = cx.elicit("approve", format!("Deploy {image}?")).await?;
    let (eu, us) = tokio::join!(
        cx.elicit::<Approval>(("region", "eu"), "EU?"),
        cx.elicit::<Approval>(("region", "us"), "US?"),
    );
    let pushed: u32 = cx
        .step("push", async || {
            notes.note("push");
            Ok(2)
        })
        .await?;
    Ok(format!("{image} {} {} {} {pushed}", approval.yes, eu?.yes, us?.yes))
}

/// Decides by a counter outside of a step.
async fn forgetful(cx: Durable, notes: State<Notes>) -> Result<String> {
    notes.note("run");
    let runs = notes.count();
    cx.elicit::<Approval>("first", "First?").await?;
    // A decision outside of a step differs in the next run.
    let key = if runs == 1 { "odd" } else { "even" };
    cx.elicit::<Approval>(("second", key), format!("Second, {key}?")).await?;
    Ok(key.into())
}

async fn token(cx: Durable) -> Result<String> {
    let secret = async || Ok(outlive::server::durable::Secret::new("hunter2".to_owned()));
    let token = cx.step("token", secret).await?;
    Ok(token.expose().len().to_string())
}

/// Starts its work again after the client got the input request.
async fn restarts(cx: Durable, notes: State<Notes>) -> Result<String> {
    let work = || {
        let (cx, notes) = (cx.clone(), notes.clone());
        Box::pin(async move {
            let image: String = cx
                .step("build", async || {
                    notes.note("build");
                    Ok("image".to_owned())
                })
                .await?;
            let approval: Approval = cx.elicit("approve", format!("Deploy {image}?")).await?;
            Ok::<_, outlive::server::Error>(format!("{image} {}", approval.yes))
        })
    };
    let mut first = work();
    let waits = tokio::time::timeout(Duration::from_secs(1), &mut first).await;
    assert!(waits.is_err(), "the work waits for input");
    cx.replay(first).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    notes.note("replay");
    work().await
}

fn server(notes: &Notes, replays: bool) -> Server {
    let tools =
        [Tool::new("deploy", deploy), Tool::new("forgetful", forgetful), Tool::new("token", token)];
    let builder = builder(tools).state(notes.clone());
    if replays { builder.replay_on_input() } else { builder }.build().unwrap()
}

fn yes() -> Value {
    accept(json!({"yes": true}))
}

/// Asserts that the next message is this input request.
async fn asked(pipe: &mut Pipe, message: &str) -> Value {
    let asked = pipe.read().await;
    assert_eq!(asked["params"]["message"], message, "{asked}");
    asked
}

#[tokio::test(start_paused = true)]
async fn replay_on_input_repeats_neither_input_requests_nor_steps() {
    for replays in [false, true] {
        let notes = Notes::default();
        let mut pipe = Talk::open(&server(&notes, replays), "2025-11-25").await.pipe;
        let id = pipe.send("tools/call", json!({"name": "deploy"})).await;
        let approve = asked(&mut pipe, "Deploy image?").await;
        pipe.reply(&approve, yes()).await;
        let (eu, us) = (asked(&mut pipe, "EU?").await, asked(&mut pipe, "US?").await);
        // The client responds to one of two open input requests long before the other.
        pipe.reply(&us, yes()).await;
        pipe.quiet().await;
        pipe.reply(&eu, yes()).await;
        let answer = pipe.answer(id).await;
        assert_eq!(texts_of(&answer), ["building", "image true true true 2"]);
        pipe.quiet().await;
        let noted = notes.take();
        let count = |what: &str| noted.iter().filter(|note| *note == what).count();
        assert_eq!((count("build"), count("push")), (1, 1), "{noted:?}");
        assert_eq!(count("run"), if replays { 4 } else { 1 }, "{noted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn replay_on_input_repeats_invalid_response_once() {
    let notes = Notes::default();
    let mut pipe = Talk::open(&server(&notes, true), "2025-11-25").await.pipe;
    let id = pipe.send("tools/call", json!({"name": "deploy"})).await;
    let mut approve = asked(&mut pipe, "Deploy image?").await;
    for _ in 0..3 {
        pipe.reply(&approve, accept(json!({"yes": "perhaps"}))).await;
        let again = "Deploy image?\n\nThe last response was invalid: `yes` must be true or false.";
        approve = asked(&mut pipe, again).await;
        pipe.quiet().await;
    }
    pipe.reply(&approve, yes()).await;
    let (eu, us) = (asked(&mut pipe, "EU?").await, asked(&mut pipe, "US?").await);
    // Only the invalid response is requested again.
    pipe.reply(&eu, accept(json!({}))).await;
    let eu = asked(&mut pipe, "EU?\n\nThe last response was invalid: `yes` is missing.").await;
    pipe.quiet().await;
    pipe.reply(&us, yes()).await;
    pipe.reply(&eu, yes()).await;
    assert_eq!(text_of(&pipe.answer(id).await), "image true true true 2");
}

#[tokio::test(start_paused = true)]
async fn replay_on_input_reveals_nondeterministic_handler() {
    let notes = Notes::default();
    let mut talk = Talk::open(&server(&notes, false), "2025-11-25").await;
    assert_eq!(talk.call("forgetful", |_| yes()).await.text(), "odd");
    notes.take();
    let mut talk = Talk::open(&server(&notes, true), "2025-11-25").await;
    assert_eq!(talk.call("forgetful", |_| yes()).await.text(), "even");
}

// M-30: values that a request state cannot carry already fail here
#[tokio::test(start_paused = true)]
async fn replay_on_input_rejects_recorded_secret() {
    let mut talk = Talk::open(&server(&Notes::default(), false), "2025-11-25").await;
    assert_eq!(text_of(&talk.call_quietly("token").await), "7");
    let mut talk = Talk::open(&server(&Notes::default(), true), "2025-11-25").await;
    let answer = talk.call_quietly("token").await;
    assert!(failure_of(&answer).contains("`token` contains a secret"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn replay_within_run_does_not_repeat_input_request() {
    let notes = Notes::default();
    let server = builder([Tool::new("restarts", restarts)]).state(notes.clone()).build().unwrap();
    let mut pipe = Talk::open(&server, "2025-11-25").await.pipe;
    let id = pipe.send("tools/call", json!({"name": "restarts"})).await;
    let approve = asked(&mut pipe, "Deploy image?").await;
    // The request is neither withdrawn nor sent again.
    pipe.quiet().await;
    pipe.reply(&approve, yes()).await;
    assert_eq!(text_of(&pipe.answer(id).await), "image true");
    assert_eq!(notes.take(), ["build", "replay"]);
}
