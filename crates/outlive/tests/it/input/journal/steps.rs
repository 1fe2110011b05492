//! Steps execute once and replay their recorded result.

use std::time::Duration;

use outlive::server::{
    Durable, Error, Result, Server, State, Tool,
    durable::{DurableError, Retry},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::{
    input::dialogue::{
        Approval, Notes, Talk, WIRES, accept, builder, failure_of, keys, refusal_of, text_of,
    },
    support::pipe::MODERN,
};

fn yes(_: &Value) -> Value {
    accept(json!({"yes": true}))
}

/// A type that loses a field when it is serialized.
#[derive(Serialize, Deserialize)]
struct Lossy {
    kept: u32,
    #[serde(skip)]
    lost: u32,
}

async fn lossy(cx: Durable, notes: State<Notes>) -> Result<String> {
    let value = cx.step("make", async || Ok(Lossy { kept: 1, lost: 2 })).await?;
    let seen = format!("kept {} lost {}", value.kept, value.lost);
    notes.note(seen.as_str());
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok(seen)
}

/// Fails permanently in one step and transiently in another.
async fn failing(cx: Durable, notes: State<Notes>) -> Result<String> {
    let permanent = cx
        .step("permanent", async || {
            notes.note("permanent");
            Err::<(), _>(Error::new(format!("no money {}", notes.count())).permanent())
        })
        .await
        .unwrap_err();
    let transient = cx
        .step("transient", async || {
            notes.note("transient");
            Err::<(), _>(Error::new("no network"))
        })
        .await
        .unwrap_err();
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok(format!("{permanent} {} {transient} {}", permanent.is_permanent(), transient.is_permanent()))
}

/// Fails permanently with an error code.
async fn refusing(cx: Durable, notes: State<Notes>) -> Result<String> {
    let refused = cx
        .step("refuse", async || {
            notes.note("refuse");
            Err::<(), _>(Error::with_code(77, "out of stock").permanent())
        })
        .await;
    cx.elicit::<Approval>("go", "Go?").await?;
    refused?;
    Ok("never".into())
}

/// Succeeds at the third attempt.
async fn third_time(cx: Durable, notes: State<Notes>) -> Result<String> {
    let retry = Retry::attempts(5)
        .initial_backoff(Duration::from_secs(2))
        .max_backoff(Duration::from_secs(3));
    let begun = Instant::now();
    let value: usize = cx
        .step_retry("flaky", retry, async |_| {
            notes.note(format!("try after {}s", begun.elapsed().as_secs()));
            match notes.count() {
                tries if tries < 3 => Err(Error::new("not yet")),
                tries => Ok(tries),
            }
        })
        .await?;
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok(value.to_string())
}

/// Never succeeds.
async fn never(cx: Durable, notes: State<Notes>) -> Result<String> {
    let retry = Retry::attempts(3).initial_backoff(Duration::from_secs(1));
    let tried = |permanent: bool| {
        let notes = &notes;
        move |_| async move {
            notes.note("try");
            let error = Error::new(format!("failed {}", notes.count()));
            Err::<(), _>(if permanent { error.permanent() } else { error })
        }
    };
    let last = cx.step_retry("transient", retry, tried(false)).await.unwrap_err();
    let first = cx.step_retry("permanent", retry, tried(true)).await.unwrap_err();
    Ok(format!("{last}, {first}"))
}

/// Returns idempotency keys of several steps and scopes.
async fn step_keys(cx: Durable, notes: State<Notes>) -> Result<String> {
    let all = [
        cx.idempotency_key("pay"),
        cx.idempotency_key(("pay", 1)),
        cx.scope("pay").idempotency_key("1"),
        cx.scope("a").idempotency_key("pay"),
    ];
    notes.note(all.join(" "));
    cx.elicit::<Approval>("first", "First?").await?;
    cx.elicit::<Approval>("second", "Second?").await?;
    Ok(cx.idempotency_key("pay"))
}

/// Elicits while a slow step and another slow future run.
async fn beside(cx: Durable, notes: State<Notes>) -> Result<String> {
    let inside = cx.step("inside", async || {
        notes.note("inside begins");
        sleep(Duration::from_secs(60)).await;
        notes.note("inside ends");
        Ok(1)
    });
    let outside = async {
        notes.note("outside begins");
        sleep(Duration::from_secs(90)).await;
        notes.note("outside ends");
    };
    let (approval, inside, ()) = tokio::join!(cx.elicit::<Approval>("go", "Go?"), inside, outside);
    Ok(format!("{} {}", approval?.yes, inside?))
}

fn server(notes: &Notes) -> Server {
    let tools = [
        Tool::new("lossy", lossy),
        Tool::new("failing", failing),
        Tool::new("refusing", refusing),
        Tool::new("third_time", third_time),
        Tool::new("never", never),
        Tool::new("step_keys", step_keys),
        Tool::new("beside", beside),
    ];
    builder(tools).state(notes.clone()).build().unwrap()
}

async fn open(version: &str) -> (Talk, Notes) {
    let notes = Notes::default();
    (Talk::open(&server(&notes), version).await, notes)
}

#[tokio::test(start_paused = true)]
async fn first_run_gets_deserialized_step_result() {
    for version in WIRES {
        let (mut talk, notes) = open(version).await;
        let expected = "kept 1 lost 0";
        assert_eq!(talk.call("lossy", yes).await.text(), expected, "{version}");
        assert!(notes.take().iter().all(|note| note == expected));
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_step_error_is_recorded_and_transient_is_not() {
    let (mut talk, notes) = open("2025-11-25").await;
    assert_eq!(talk.call("failing", yes).await.text(), "no money 1 true no network false");
    assert_eq!(notes.take(), ["permanent", "transient"]);
    let (mut talk, notes) = open(MODERN).await;
    assert_eq!(talk.call("failing", yes).await.text(), "no money 1 true no network false");
    assert_eq!(notes.take(), ["permanent", "transient", "transient"]);
}

// A protocol error replays as the same protocol error.
#[tokio::test(start_paused = true)]
async fn recorded_protocol_error_replays_with_its_code() {
    for version in WIRES {
        let (mut talk, notes) = open(version).await;
        let played = talk.call("refusing", yes).await;
        assert_eq!(refusal_of(&played.answer), (77, "out of stock"), "{version}");
        assert_eq!(notes.take(), ["refuse"]);
    }
}

#[tokio::test(start_paused = true)]
async fn retried_step_waits_with_growing_backoff() {
    for version in WIRES {
        let (mut talk, notes) = open(version).await;
        assert_eq!(talk.call("third_time", yes).await.text(), "3", "{version}");
        assert_eq!(notes.take(), ["try after 0s", "try after 2s", "try after 5s"]);
    }
}

#[tokio::test(start_paused = true)]
async fn retried_step_stops_at_attempt_limit_or_permanent_error() {
    for version in WIRES {
        let (mut talk, notes) = open(version).await;
        let begun = Instant::now();
        assert_eq!(text_of(&talk.call_quietly("never").await), "failed 3, failed 4", "{version}");
        assert_eq!(notes.take().len(), 4);
        assert_eq!(begun.elapsed().as_secs(), 3, "backoff of one and two seconds");
    }
}

#[tokio::test(start_paused = true)]
async fn idempotency_key_is_stable_within_call_and_unique_across_calls() {
    let mut calls = Vec::new();
    for version in [WIRES[0], WIRES[1], MODERN] {
        let (mut talk, notes) = open(version).await;
        for _ in 0..2 {
            let last = talk.call("step_keys", yes).await.text().to_owned();
            let noted = notes.take();
            assert!(noted.iter().all(|note| *note == noted[0]), "{version}: {noted:?}");
            let mut keys: Vec<String> = noted[0].split(' ').map(str::to_owned).collect();
            assert_eq!(keys[0], last, "{version}");
            assert_eq!(keys[1], keys[2], "a scope with a part equals a key with that part");
            keys.remove(2);
            calls.extend(keys);
        }
    }
    let all = calls.len();
    calls.sort();
    calls.dedup();
    assert_eq!(calls.len(), all, "idempotency keys are not unique");
    assert!(calls.iter().all(|key| key.len() >= 32), "{calls:?}");
}

// M-45: the same round sent twice, as after a lost response
#[tokio::test(start_paused = true)]
async fn repeated_round_has_same_idempotency_keys() {
    let (mut talk, notes) = open(MODERN).await;
    let first = talk.begin("step_keys").await;
    let answers = || json!({"first": accept(json!({"yes": true}))});
    let mut seconds = Vec::new();
    for _ in 0..3 {
        seconds.push(talk.back("step_keys", &first, answers()).await);
    }
    let noted = notes.take();
    assert!(noted.iter().all(|note| *note == noted[0]), "{noted:?}");
    for second in &seconds {
        assert_eq!(keys(second), ["second"]);
    }
}

#[tokio::test(start_paused = true)]
async fn suspension_waits_for_steps_but_not_for_other_futures() {
    let (mut talk, notes) = open(MODERN).await;
    let begun = Instant::now();
    // The response waits for the step, which takes longer than the read timeout of the test pipe.
    let id = {
        let params = json!({"name": "beside", "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
        }});
        talk.pipe.send_as_is("tools/call", params).await
    };
    sleep(Duration::from_secs(59)).await;
    assert_eq!(notes.take(), ["inside begins", "outside begins"]);
    let first = talk.pipe.answer(id).await;
    assert_eq!(begun.elapsed().as_secs(), 60);
    assert_eq!(notes.take(), ["inside ends"], "the other future was dropped");
    let id = {
        let params = json!({
            "name": "beside",
            "requestState": first["result"]["requestState"],
            "inputResponses": {"go": accept(json!({"yes": true}))},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        });
        talk.pipe.send_as_is("tools/call", params).await
    };
    sleep(Duration::from_secs(89)).await;
    assert_eq!(text_of(&talk.pipe.answer(id).await), "true 1");
    assert_eq!(
        notes.take(),
        ["outside begins", "outside ends"],
        "the future runs again, the step does not"
    );
}

#[tokio::test(start_paused = true)]
async fn step_once_without_store_fails() {
    async fn once(cx: Durable, notes: State<Notes>) -> Result<String> {
        let body = async || {
            notes.note("done");
            Ok(1)
        };
        let error = cx.scope("in").step_once("pay", body).await.unwrap_err();
        match error.durable_error() {
            Some(DurableError::StoreRequired { key }) => Ok(format!("{key}: {error}")),
            _ => Err(error),
        }
    }
    async fn brief(cx: Durable) -> Result<String> {
        cx.step_once("pay", async || Ok(String::new())).await
    }
    let declared = builder([Tool::new("once", once).uses_step_once()]).state(Notes::default());
    let error = declared.build().unwrap_err().to_string();
    assert!(error.contains("once") && error.contains("needs a store"), "{error}");
    for version in WIRES {
        let notes = Notes::default();
        let tools = [Tool::new("once", once), Tool::new("brief", brief)];
        let server = builder(tools).state(notes.clone()).build().unwrap();
        let mut talk = Talk::open(&server, version).await;
        let needs =
            "may run only once and needs a store to record that; configure one with `.tasks(…)`";
        let answer = talk.call_quietly("once").await;
        assert_eq!(text_of(&answer), format!("in/pay: step `in/pay` {needs}"));
        assert_eq!(failure_of(&talk.call_quietly("brief").await), format!("step `pay` {needs}"));
        assert!(notes.take().is_empty(), "the step did not run");
    }
}
