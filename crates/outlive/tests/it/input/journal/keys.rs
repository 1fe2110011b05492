//! A key is used once per run, outside of steps, and only inside the run.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive::server::{
    Durable, Error, Result, Server, State, Tool,
    durable::{DurableError, JournalError},
};
use outlive::wire::CreateMessageRequestParams;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::{
    input::dialogue::{Approval, Talk, WIRES, accept, builder, keys, server, text_of},
    support::pipe::MODERN,
};

/// Returns the journal error inside an error.
fn misuse(error: &Error) -> String {
    match error.durable_error() {
        Some(DurableError::Journal(misuse)) => format!("{misuse:?}"),
        _ => format!("not a misuse: {error}"),
    }
}

fn yes(_: &Value) -> Value {
    accept(json!({"yes": true}))
}

async fn step(cx: &Durable, key: &str) -> Result<u32> {
    cx.step(key, async || Ok(1)).await
}

/// Uses a key twice, with many other operations in between.
async fn far_apart(cx: Durable) -> Result<String> {
    step(&cx, "a").await?;
    sleep(Duration::from_secs(5)).await;
    cx.elicit::<Approval>("b", "B?").await?;
    cx.sleep("c", Duration::from_secs(1)).await?;
    step(&cx, "d").await?;
    let mut found = Vec::new();
    for key in ["a", "b", "c", "d"] {
        found.push(misuse(&step(&cx, key).await.unwrap_err()));
        found.push(misuse(&cx.elicit::<Approval>(key, "?").await.unwrap_err()));
        found.push(misuse(&cx.sleep(key, Duration::ZERO).await.unwrap_err()));
        found.push(misuse(&cx.roots(key).await.unwrap_err()));
    }
    let expected: Vec<String> = ["a", "b", "c", "d"]
        .iter()
        .flat_map(|key| vec![format!("DuplicateKey({key:?})"); 4])
        .collect();
    assert_eq!(found, expected);
    Ok("found them all".into())
}

#[tokio::test(start_paused = true)]
async fn key_used_twice_in_one_run_fails() {
    for version in WIRES {
        let server = server([Tool::new("far_apart", far_apart)]);
        let played = Talk::open(&server, version).await.call("far_apart", yes).await;
        assert_eq!(played.text(), "found them all", "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn key_used_twice_concurrently_fails() {
    async fn at_once(cx: Durable) -> Result<String> {
        let slow = || {
            cx.step("a", async || {
                sleep(Duration::from_secs(1)).await;
                Ok(1)
            })
        };
        let (first, second) = tokio::join!(slow(), slow());
        let asked =
            tokio::try_join!(cx.elicit::<Approval>("b", "B?"), cx.elicit::<Approval>("b", "B?"),);
        Ok(format!("{} {} {}", first?, misuse(&second.unwrap_err()), misuse(&asked.unwrap_err())))
    }
    for version in WIRES {
        let server = server([Tool::new("at_once", at_once)]);
        let mut talk = Talk::open(&server, version).await;
        let expected = r#"1 DuplicateKey("a") DuplicateKey("b")"#;
        assert_eq!(text_of(&talk.call_quietly("at_once").await), expected, "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn failed_or_dropped_step_frees_its_key() {
    async fn again(cx: Durable) -> Result<String> {
        // A later run finds the entry and does not fail.
        let failed = cx.step("a", async || Err::<u32, _>(Error::new("not yet"))).await;
        let value: u32 = match failed {
            Ok(value) => value,
            Err(_) => cx.step("a", async || Ok(7)).await?,
        };
        let slow = cx.step("b", async || {
            sleep(Duration::from_secs(9)).await;
            Ok(0)
        });
        let after: u32 = match tokio::time::timeout(Duration::from_secs(1), slow).await {
            Ok(value) => value?,
            Err(_) => cx.step("b", async || Ok(8)).await?,
        };
        cx.elicit::<Approval>("go", "Go?").await?;
        Ok(format!("{value} {after}"))
    }
    for version in WIRES {
        let server = server([Tool::new("again", again)]);
        let mut talk = Talk::open(&server, version).await;
        assert_eq!(talk.call("again", yes).await.text(), "7 8", "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_input_request_frees_its_key_and_is_not_sent() {
    async fn insisting(cx: Durable) -> Result<String> {
        for words in ["First?", "Second?"] {
            let question = cx.elicit::<Approval>("a", words);
            // The future is not polled long enough to send the input request.
            if let Ok(approval) = tokio::time::timeout(Duration::ZERO, question).await {
                return Ok(format!("{words} {}", approval?.yes));
            }
        }
        let approval = cx.elicit::<Approval>("a", "Third?").await?;
        Ok(format!("Third? {}", approval.yes))
    }
    let server = server([Tool::new("insisting", insisting)]);
    let played = Talk::open(&server, MODERN).await.call("insisting", yes).await;
    assert_eq!(played.messages(), ["Third?"]);
}

#[tokio::test(start_paused = true)]
async fn scopes_and_key_parts_yield_distinct_keys() {
    async fn scoped(cx: Durable) -> Result<String> {
        let (one, two) = (cx.scope("one"), cx.scope(("two", 2)));
        let nested = one.scope("two");
        let mut found = Vec::new();
        for (number, cx) in [&cx, &one, &two, &nested].into_iter().enumerate() {
            found.push(cx.step("a", async || Ok(number)).await?);
            found.push(cx.step(("a", "b"), async || Ok(number + 10)).await?);
            found.push(cx.step("a/b", async || Ok(number + 20)).await?);
        }
        let mut asked = Vec::new();
        tokio::join!(
            async { asked.push(cx.elicit::<Approval>(("q", "x/y"), "1").await) },
            async { drop(one.elicit::<Approval>("q", "2").await) },
            async { drop(two.elicit::<Approval>("q#2", "3").await) },
            async { drop(nested.elicit::<Approval>("ü \"quoted\"", "4").await) },
        );
        Ok(format!("{found:?}"))
    }
    let server = server([Tool::new("scoped", scoped)]);
    let mut talk = Talk::open(&server, MODERN).await;
    let first = talk.begin("scoped").await;
    let asked = [r"q/x\/y", "one/q", r"two/2/q\#2", "one/two/ü \"quoted\""];
    assert_eq!(keys(&first), asked);
    let answers: serde_json::Map<String, Value> =
        asked.iter().map(|key| ((*key).to_owned(), accept(json!({"yes": true})))).collect();
    let last = talk.back("scoped", &first, answers.into()).await;
    assert_eq!(text_of(&last), "[0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23]");
}

/// Tries every operation that is not allowed inside a step.
async fn inside(cx: Durable) -> Result<String> {
    let found = cx
        .step("outer", async || {
            let mut found = Vec::new();
            found.push(misuse(&step(&cx, "step").await.unwrap_err()));
            found.push(misuse(
                &cx.step_retry("retry", outlive::server::durable::Retry::attempts(3), async |_| {
                    Ok(1)
                })
                .await
                .unwrap_err(),
            ));
            found.push(misuse(&cx.elicit::<Approval>("elicit", "?").await.unwrap_err()));
            found
                .push(misuse(&cx.elicit_url("url", "?", "https://example.com").await.unwrap_err()));
            found.push(misuse(
                &cx.sample("sample", CreateMessageRequestParams::default()).await.unwrap_err(),
            ));
            found.push(misuse(&cx.roots("roots").await.unwrap_err()));
            found.push(misuse(&cx.sleep("sleep", Duration::ZERO).await.unwrap_err()));
            found.push(misuse(&step(&cx.scope("scope"), "step").await.unwrap_err()));
            // These operations are allowed inside a step.
            cx.progress(1.0, None, "");
            cx.emit("from inside").await?;
            assert!(!cx.idempotency_key("key").is_empty());
            Ok(found)
        })
        .await?;
    // The failed operations did not use up their keys.
    step(&cx, "step").await?;
    cx.sleep("sleep", Duration::ZERO).await?;
    Ok(found.join(" "))
}

#[tokio::test(start_paused = true)]
async fn durable_operations_inside_step_fail() {
    for version in WIRES {
        let server = server([Tool::new("inside", inside)]);
        let mut talk = Talk::open(&server, version).await;
        let expected: Vec<String> =
            ["step", "retry", "elicit", "url", "sample", "roots", "sleep", "scope/step"]
                .iter()
                .map(|key| format!("InsideStep({key:?})"))
                .collect();
        let answer = talk.call_quietly("inside").await;
        assert_eq!(text_of(&answer), expected.join(" "), "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn yield_inside_step_fails() {
    async fn yielding(cx: Durable) -> Result<String> {
        let inside = async || Ok(misuse(&cx.yield_to_replica().await.unwrap_err()));
        cx.step("outer", inside).await
    }
    let server = server([Tool::new("yielding", yielding)]);
    let mut talk = Talk::open(&server, MODERN).await;
    assert_eq!(text_of(&talk.begin("yielding").await), r#"InsideStep("yield")"#);
}

#[tokio::test(start_paused = true)]
async fn durable_operations_in_spawned_task_fail() {
    async fn spawning(cx: Durable) -> Result<String> {
        let theirs = cx.scope("in");
        let task = tokio::spawn(async move {
            let cx = theirs;
            let found = [
                misuse(&step(&cx, "step").await.unwrap_err()),
                misuse(&cx.elicit::<Approval>("elicit", "?").await.unwrap_err()),
                misuse(&cx.roots("roots").await.unwrap_err()),
                misuse(&cx.sleep("sleep", Duration::ZERO).await.unwrap_err()),
                misuse(&cx.emit("lost").await.unwrap_err()),
            ];
            cx.progress(1.0, None, "from anywhere");
            found.join(" ")
        });
        Ok(task.await?)
    }
    for version in WIRES {
        let server = server([Tool::new("spawning", spawning)]);
        let mut talk = Talk::open(&server, version).await;
        let expected: Vec<String> = ["in/step", "in/elicit", "in/roots", "in/sleep", "emit"]
            .iter()
            .map(|key| format!("OutsideRun({key:?})"))
            .collect();
        assert_eq!(text_of(&talk.call_quietly("spawning").await), expected.join(" "), "{version}");
    }
}

/// A context that outlives its call.
type Smuggled = Arc<Mutex<Option<Durable>>>;

#[tokio::test(start_paused = true)]
async fn context_after_end_of_its_call_fails() {
    async fn smuggling(cx: Durable, out: State<Smuggled>) -> Result<String> {
        *out.lock().unwrap() = Some(cx.scope("out"));
        Ok("gone".into())
    }
    async fn using(cx: Durable, out: State<Smuggled>) -> Result<String> {
        let theirs = out.lock().unwrap().take().expect("a context of another call");
        let found = [
            misuse(&step(&theirs, "a").await.unwrap_err()),
            misuse(&theirs.elicit::<Approval>("b", "?").await.unwrap_err()),
            misuse(&theirs.sleep("c", Duration::ZERO).await.unwrap_err()),
        ];
        // The handler's own context still works.
        step(&cx, "a").await?;
        Ok(found.join(" "))
    }
    fn asking(out: &Smuggled) -> Server {
        let tools = [Tool::new("smuggling", smuggling), Tool::new("using", using)];
        builder(tools).state(Arc::clone(out)).build().unwrap()
    }
    for version in WIRES {
        let out = Smuggled::default();
        let mut talk = Talk::open(&asking(&out), version).await;
        assert_eq!(text_of(&talk.call_quietly("smuggling").await), "gone");
        // Inside another call, and outside of any call.
        let expected = r#"OutsideRun("out/a") OutsideRun("out/b") OutsideRun("out/c")"#;
        assert_eq!(text_of(&talk.call_quietly("using").await), expected, "{version}");
        assert_eq!(text_of(&talk.call_quietly("smuggling").await), "gone");
        let theirs = out.lock().unwrap().take().unwrap();
        let error = step(&theirs, "a").await.unwrap_err();
        assert_eq!(misuse(&error), r#"OutsideRun("out/a")"#);
    }
}

#[test]
fn journal_errors_name_key_and_remedy() {
    let key = || "build".to_owned();
    for (misuse, says) in [
        (JournalError::DuplicateKey(key()), "use a scope"),
        (JournalError::InsideStep(key()), "outside of other steps"),
        (JournalError::OutsideRun(key()), "join futures inside the handler"),
        (JournalError::TooLarge { key: key(), bytes: 9, limit: 8 }, "record less"),
        (JournalError::KindMismatch(key()), "use a new key"),
    ] {
        let text = misuse.to_string();
        assert!(text.contains("`build`") && text.contains(says), "{text}");
    }
}
