//! Size limit of request states, and secrets in journals.

use outlive::server::{
    Args, Durable, Error, Result, Server, Tool,
    durable::{DurableError, JournalError, Secret},
};
use outlive::wire::{BooleanSchema, RequestedSchema, StringSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{
        Approval, Talk, accept, builder, failure_of, keys, logged, state_of, text_of,
    },
    support::pipe::MODERN,
};

/// Default size limit of a request state.
const LIMIT: usize = 16 << 10;

#[derive(Deserialize, JsonSchema)]
struct Size {
    bytes: usize,
}

/// Returns key, size and limit of a `TooLarge` error.
fn too_large(error: &Error) -> Option<(&str, usize, usize)> {
    match error.durable_error()? {
        DurableError::Journal(JournalError::TooLarge { key, bytes, limit }) => {
            Some((key, *bytes, *limit))
        }
        _ => None,
    }
}

async fn record(cx: Durable, Args(Size { bytes }): Args<Size>) -> Result<String> {
    cx.step("small", async || Ok(1)).await?;
    let value: String = cx.scope("in").step("build", async || Ok("x".repeat(bytes))).await?;
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok(value.len().to_string())
}

/// Records a shorter value if the long one is too large.
async fn modest(cx: Durable, Args(Size { bytes }): Args<Size>) -> Result<String> {
    let text: Result<String> = cx.step("build", async || Ok("x".repeat(bytes))).await;
    let text = match text {
        Ok(text) => text,
        Err(error) if too_large(&error).is_some() => {
            cx.step("build", async || Ok("x".repeat(10))).await?
        }
        Err(error) => return Err(error),
    };
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok(text.len().to_string())
}

async fn emit(cx: Durable, Args(Size { bytes }): Args<Size>) -> Result<String> {
    cx.scope("in").emit("small").await?;
    let error = match cx.scope("in").emit("x".repeat(bytes)).await {
        Ok(()) => return Ok("emitted".into()),
        Err(error) => error,
    };
    let (key, ..) = too_large(&error).expect("a size error");
    Ok(format!("{key}: {error}"))
}

/// Records small entries until the journal is full, then elicits.
async fn many_steps(cx: Durable) -> Result<String> {
    for number in 0..100_000 {
        if cx.step(("k", number), async || Ok(1)).await.is_err() {
            break;
        }
    }
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok("done".into())
}

/// The same with keys that grow when they are escaped.
async fn strange_keys(cx: Durable) -> Result<String> {
    for number in 0..100_000 {
        if cx.step(("\"\\\"\n\"", number), async || Ok("\n".to_owned())).await.is_err() {
            break;
        }
    }
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok("done".into())
}

/// The same with segments.
async fn many_blocks(cx: Durable) -> Result<String> {
    while cx.emit("b").await.is_ok() {}
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok("done".into())
}

/// Fills the journal, then opens as many input requests with long keys as allowed.
async fn many_questions(cx: Durable) -> Result<String> {
    for number in 0..100_000 {
        if cx.step(("k", number), async || Ok("y".repeat(100))).await.is_err() {
            break;
        }
    }
    let name = |number: usize| format!("{}{number}", "q".repeat(200));
    let mut asked: Vec<_> = (0..32)
        .map(|number| {
            let schema = RequestedSchema::default().with_optional("x", BooleanSchema::default());
            Box::pin(cx.elicit_with::<Value>(name(number), "?", schema))
        })
        .collect();
    std::future::poll_fn(|task| {
        let mut open = 0;
        for question in &mut asked {
            match std::future::Future::poll(question.as_mut(), task) {
                std::task::Poll::Pending => open += 1,
                // The input request failed because of its size, which the test expects.
                std::task::Poll::Ready(_) => return std::task::Poll::Ready(()),
            }
        }
        assert_eq!(open, 32);
        std::task::Poll::Pending
    })
    .await;
    Ok("refused".into())
}

async fn text(cx: Durable) -> Result<String> {
    let schema = RequestedSchema::default().with_required("text", StringSchema::default());
    let answer: Value = cx.elicit_with("text", "Text?", schema).await?;
    Ok(answer["text"].as_str().map_or(0, str::len).to_string())
}

/// A type with a nested secret.
#[derive(Serialize, Deserialize)]
struct Login {
    user: String,
    tokens: Vec<Option<Secret<String>>>,
}

async fn secret(cx: Durable) -> Result<String> {
    let made = async || {
        let tokens = vec![None, Some(Secret::new("hunter2".to_owned()))];
        Ok(Login { user: "anna".into(), tokens })
    };
    let login = match cx.step("login", made).await {
        Ok(login) => login,
        Err(error) => match error.durable_error() {
            Some(DurableError::Journal(JournalError::SecretNotAllowed(key))) => {
                return Ok(format!("{key}: {error} {error:?}"));
            }
            _ => return Err(error),
        },
    };
    cx.elicit::<Approval>("go", "Go?").await?;
    let token = login.tokens[1].clone().expect("a token");
    Ok(format!("{} {token:?} {}", login.user, token.expose().len()))
}

fn server() -> Server {
    builder([
        Tool::new("record", record),
        Tool::new("modest", modest),
        Tool::new("emit", emit),
        Tool::new("many_steps", many_steps),
        Tool::new("strange_keys", strange_keys),
        Tool::new("many_blocks", many_blocks),
        Tool::new("many_questions", many_questions),
        Tool::new("text", text),
        Tool::new("secret", secret),
    ])
    .build()
    .unwrap()
}

async fn play(version: &str, tool: &str, bytes: usize) -> Value {
    let mut talk = Talk::open(&server(), version).await;
    let params = json!({"name": tool, "arguments": {"bytes": bytes}});
    talk.request("tools/call", params, |_| accept(json!({"yes": true}))).await.answer
}

// M-30: the error names the key when the entry is recorded
#[tokio::test(start_paused = true)]
async fn journal_entry_over_limit_fails_when_recorded() {
    let answer = play(MODERN, "record", LIMIT).await;
    let text = failure_of(&answer);
    assert!(text.starts_with("recording `in/build` grows the journal "), "{text}");
    assert!(text.contains("record less"), "{text}");
    assert_eq!(text_of(&play(MODERN, "record", 8_000).await), "8000");
    // A journal that is not sent to the client may be larger.
    assert_eq!(text_of(&play("2025-11-25", "record", 1 << 20).await), (1 << 20).to_string());
}

// M-30
#[tokio::test(start_paused = true)]
async fn handler_can_record_smaller_entry_after_size_error() {
    assert_eq!(text_of(&play(MODERN, "modest", LIMIT).await), "10");
    assert_eq!(text_of(&play(MODERN, "modest", 1_000).await), "1000");
    assert_eq!(text_of(&play("2025-11-25", "modest", LIMIT).await), LIMIT.to_string());
}

// M-30
#[tokio::test(start_paused = true)]
async fn emitted_segment_over_limit_fails_with_its_position() {
    let answer = play(MODERN, "emit", LIMIT).await;
    let text = text_of(&answer);
    assert!(text.starts_with("segment 2 of `in`: recording `segment 2 of `in`` grows"), "{text}");
    assert_eq!(text_of(&play(MODERN, "emit", 1_000).await), "emitted");
    assert_eq!(text_of(&play("2025-11-25", "emit", LIMIT).await), "emitted");
}

// M-30: the limit applies to the sealed request state
#[tokio::test(start_paused = true)]
async fn request_state_never_exceeds_limit() {
    let mut too_large = Vec::new();
    for tool in ["many_steps", "strange_keys", "many_blocks", "many_questions"] {
        let mut talk = Talk::open(&server(), MODERN).await;
        let answer = talk.begin(tool).await;
        if answer["result"]["resultType"] == "complete" {
            assert_eq!(text_of(&answer), "refused", "{tool}");
            continue;
        }
        let size = state_of(&answer).len();
        assert!(size > LIMIT / 2, "{tool}: {size} of {LIMIT} bytes, too much space is left");
        if size > LIMIT {
            too_large.push((tool, size));
        }
    }
    assert_eq!(too_large, [], "of {LIMIT} bytes");
}

// M-30
#[tokio::test(start_paused = true)]
async fn request_state_limit_is_configurable() {
    let builder = builder([Tool::new("record", record)]);
    let server = builder.limits(|limits| limits.max_request_state_bytes = 4 << 10).build().unwrap();
    for (bytes, fits) in [(2_000, true), (8_000, false)] {
        let mut talk = Talk::open(&server, MODERN).await;
        let params = json!({"name": "record", "arguments": {"bytes": bytes}});
        let answer = talk.once("tools/call", params).await;
        assert_eq!(answer["result"]["resultType"] == "input_required", fits, "{answer}");
    }
}

// M-30: a client cannot fill the journal with input responses
#[tokio::test(start_paused = true)]
async fn input_response_over_limit_is_requested_again() {
    let (log, _guard) = logged();
    let mut talk = Talk::open(&server(), MODERN).await;
    let first = talk.begin("text").await;
    let answer = |bytes: usize| json!({"text": accept(json!({"text": "x".repeat(bytes)}))});
    let again = talk.back("text", &first, answer(LIMIT)).await;
    assert_eq!(keys(&again), ["text"]);
    assert!(state_of(&again).len() < LIMIT / 4);
    let log = log.take();
    assert!(log.iter().any(|line| line.contains("input response is too large")), "{log:?}");
    assert_eq!(text_of(&talk.back("text", &again, answer(100)).await), "100");
}

// M-22
#[tokio::test(start_paused = true)]
async fn secret_in_request_state_fails() {
    let (log, _guard) = logged();
    let mut talk = Talk::open(&server(), MODERN).await;
    let answer = talk.call_quietly("secret").await;
    let text = text_of(&answer);
    assert!(text.starts_with("login: `login` contains a secret"), "{text}");
    assert!(!answer.to_string().contains("hunter2"), "{answer}");
    let log = log.take().join("\n");
    assert!(!log.contains("hunter2"), "{log}");
}

#[tokio::test(start_paused = true)]
async fn secret_in_waiting_call_is_recorded() {
    let mut talk = Talk::open(&server(), "2025-11-25").await;
    let played = talk.call("secret", |_| accept(json!({"yes": true}))).await;
    assert_eq!(played.text(), "anna Secret(…) 7");
}
