//! `replay_on_input`: the handler runs again at every answer, and the client does not notice.

use outlive::server::{Durable, Result, Server, State, Tool};
use serde_json::{Value, json};

use crate::{
    questions::dialogue::{Approval, Notes, Talk, accept, builder, failure_of, text_of, texts_of},
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

/// Counts outside of a step how often it has come so far.
async fn forgetful(cx: Durable, notes: State<Notes>) -> Result<String> {
    notes.note("run");
    let runs = notes.count();
    cx.elicit::<Approval>("first", "First?").await?;
    // A decision that is no step takes another way the next time.
    let key = if runs == 1 { "odd" } else { "even" };
    cx.elicit::<Approval>(("second", key), format!("Second, {key}?")).await?;
    Ok(key.into())
}

async fn token(cx: Durable) -> Result<String> {
    let secret = async || Ok(outlive::server::durable::Secret::new("hunter2".to_owned()));
    let token = cx.step("token", secret).await?;
    Ok(token.expose().len().to_string())
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

/// Reads what is asked next.
async fn asked(pipe: &mut Pipe, message: &str) -> Value {
    let asked = pipe.read().await;
    assert_eq!(asked["params"]["message"], message, "{asked}");
    asked
}

#[tokio::test(start_paused = true)]
async fn no_question_is_shown_twice_and_no_step_is_taken_twice() {
    for replays in [false, true] {
        let notes = Notes::default();
        let mut pipe = Talk::open(&server(&notes, replays), "2025-11-25").await.pipe;
        let id = pipe.send("tools/call", json!({"name": "deploy"})).await;
        let approve = asked(&mut pipe, "Deploy image?").await;
        pipe.reply(&approve, yes()).await;
        let (eu, us) = (asked(&mut pipe, "EU?").await, asked(&mut pipe, "US?").await);
        // One of two that are open is answered, a good while before the other.
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
async fn an_answer_that_does_not_fit_is_asked_for_again_once() {
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
    // The one that does not fit is asked again; the other is left as it is.
    pipe.reply(&eu, accept(json!({}))).await;
    let eu = asked(&mut pipe, "EU?\n\nThe last response was invalid: `yes` is missing.").await;
    pipe.quiet().await;
    pipe.reply(&us, yes()).await;
    pipe.reply(&eu, yes()).await;
    assert_eq!(text_of(&pipe.answer(id).await), "image true true true 2");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_would_break_on_2026_07_28_breaks_at_the_desk() {
    let notes = Notes::default();
    let mut talk = Talk::open(&server(&notes, false), "2025-11-25").await;
    assert_eq!(talk.call("forgetful", |_| yes()).await.text(), "odd");
    notes.take();
    let mut talk = Talk::open(&server(&notes, true), "2025-11-25").await;
    assert_eq!(talk.call("forgetful", |_| yes()).await.text(), "even");
}

// M-30: what could not travel there is refused here already
#[tokio::test(start_paused = true)]
async fn a_secret_that_could_not_travel_is_refused_at_the_desk() {
    let mut talk = Talk::open(&server(&Notes::default(), false), "2025-11-25").await;
    assert_eq!(text_of(&talk.call_quietly("token").await), "7");
    let mut talk = Talk::open(&server(&Notes::default(), true), "2025-11-25").await;
    let answer = talk.call_quietly("token").await;
    assert!(failure_of(&answer).contains("`token` holds a secret"), "{answer}");
}
