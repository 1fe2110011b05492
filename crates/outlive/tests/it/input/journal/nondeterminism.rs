//! Nondeterminism: handlers that changed since the call started, or that differ between runs.

use outlive::server::{
    Durable, Prompt, ResourceTemplate, Result, SealKeys, Server, State, Tool,
    durable::{DurableError, JournalError},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    input::dialogue::{Approval, Notes, Talk, accept, builder, failure_of, keys, logged, text_of},
    support::pipe::MODERN,
};

/// A replica with this version of the tool. All replicas share their seal keys.
fn replica(tool: Tool) -> Server {
    builder([tool]).seal_keys(SealKeys::new([7; 32])).build().unwrap()
}

fn yes() -> Value {
    accept(json!({"yes": true}))
}

/// Starts a call with `old` and sends the next round, with a response for `go`, to `new`.
async fn upgrade(old: Tool, new: Tool) -> Value {
    let first = Talk::open(&replica(old), MODERN).await.begin("deploy").await;
    let mut talk = Talk::open(&replica(new), MODERN).await;
    talk.back("deploy", &first, json!({"go": yes()})).await
}

#[derive(Serialize, Deserialize)]
struct Image {
    name: String,
}

async fn records_text(cx: Durable) -> Result<String> {
    cx.scope("in").step("build", async || Ok("shop:1".to_owned())).await?;
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok("old".into())
}

async fn records_struct(cx: Durable) -> Result<String> {
    let image: Image =
        cx.scope("in").step("build", async || Ok(Image { name: "shop".into() })).await?;
    cx.elicit::<Approval>("go", "Go?").await?;
    Ok(image.name)
}

#[tokio::test(start_paused = true)]
async fn journal_entry_of_changed_type_fails_with_its_key() {
    let answer =
        upgrade(Tool::new("deploy", records_text), Tool::new("deploy", records_struct)).await;
    let text = failure_of(&answer);
    assert!(text.starts_with("journal entry `in/build` does not match its type: "), "{text}");
    assert!(text.ends_with("start a new call"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn handler_can_handle_incompatible_journal_entry() {
    async fn looking(cx: Durable) -> Result<String> {
        let image: Result<Image> =
            cx.scope("in").step("build", async || Ok(Image { name: String::new() })).await;
        match image.err().as_ref().and_then(outlive::server::Error::durable_error) {
            Some(DurableError::IncompatibleEntry { key, reason }) => Ok(format!("{key}: {reason}")),
            other => Ok(format!("{other:?}")),
        }
    }
    let answer = upgrade(Tool::new("deploy", records_text), Tool::new("deploy", looking)).await;
    assert!(text_of(&answer).starts_with("in/build: invalid type: string"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn journal_entry_of_another_kind_fails_with_its_key() {
    async fn steps(cx: Durable) -> Result<String> {
        let _: u32 = cx.step("thing", async || Ok(1)).await?;
        cx.sleep("timer", std::time::Duration::ZERO).await?;
        cx.elicit::<Approval>("go", "Go?").await?;
        Ok("old".into())
    }
    async fn swapped(cx: Durable) -> Result<String> {
        let errors = [
            cx.elicit::<Approval>("thing", "?").await.map(drop).unwrap_err(),
            cx.step("timer", async || Ok(1)).await.map(drop).unwrap_err(),
            cx.step("go", async || Ok(1)).await.map(drop).unwrap_err(),
        ];
        let other_kind = |error: &outlive::server::Error| match error.durable_error() {
            Some(DurableError::Journal(JournalError::KindMismatch(key))) => key.clone(),
            _ => error.to_string(),
        };
        Ok(errors.each_ref().map(other_kind).join(" "))
    }
    let answer = upgrade(Tool::new("deploy", steps), Tool::new("deploy", swapped)).await;
    assert_eq!(text_of(&answer), "thing timer go");
}

// M-42
#[tokio::test(start_paused = true)]
async fn journal_entry_not_reached_on_replay_logs_warning() {
    async fn brief(cx: Durable) -> Result<String> {
        cx.emit("hello").await?;
        Ok("new".into())
    }
    let (log, _guard) = logged();
    let answer = upgrade(Tool::new("deploy", records_text), Tool::new("deploy", brief)).await;
    assert_eq!(text_of(&answer), "new", "a warning, not an error");
    let log = log.take();
    let warned: Vec<_> = log.iter().filter(|line| line.starts_with("WARN")).collect();
    assert_eq!(warned.len(), 1, "{log:?}");
    assert!(warned[0].contains("go, in/build") && warned[0].contains("deploy"), "{warned:?}");
}

#[tokio::test(start_paused = true)]
async fn replay_reaching_every_entry_logs_no_warning() {
    let (log, _guard) = logged();
    let answer =
        upgrade(Tool::new("deploy", records_text), Tool::new("deploy", records_text)).await;
    assert_eq!(text_of(&answer), "old");
    assert!(log.take().iter().all(|line| !line.starts_with("WARN")));
}

// The timeout of an input request is stored apart from the author's keys.
#[tokio::test(start_paused = true)]
async fn key_resembling_timeout_suffix_is_an_ordinary_key() {
    async fn old(cx: Durable) -> Result<String> {
        cx.step("rent#due", async || Ok(1)).await?;
        cx.elicit::<Approval>("go", "Go?").timeout(std::time::Duration::from_secs(9)).await?;
        Ok("old".into())
    }
    async fn new(cx: Durable) -> Result<String> {
        cx.elicit::<Approval>("go", "Go?").timeout(std::time::Duration::from_secs(9)).await?;
        Ok("new".into())
    }
    let (log, _guard) = logged();
    let answer = upgrade(Tool::new("deploy", old), Tool::new("deploy", new)).await;
    assert_eq!(text_of(&answer), "new");
    let log = log.take();
    let warned: Vec<_> = log.iter().filter(|line| line.starts_with("WARN")).collect();
    assert!(warned.len() == 1 && warned[0].contains("rent"), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn nondeterministic_handler_requests_other_input_in_each_run() {
    async fn fickle(cx: Durable, notes: State<Notes>) -> Result<String> {
        notes.note("run");
        let way = notes.count();
        cx.elicit::<Approval>(("way", way), format!("Way {way}?")).await?;
        Ok(format!("took way {way}"))
    }
    let server = builder([Tool::new("fickle", fickle)]).state(Notes::default()).build().unwrap();
    let (log, _guard) = logged();
    let mut talk = Talk::open(&server, MODERN).await;
    let first = talk.begin("fickle").await;
    let second = talk.back("fickle", &first, json!({"way/1": yes()})).await;
    assert_eq!(keys(&second), ["way/2"]);
    let params = json!({"name": "fickle", "inputResponses": {"way/3": yes()}});
    assert_eq!(text_of(&talk.once("tools/call", params).await), "took way 3");
    assert!(log.take().iter().all(|line| !line.starts_with("WARN")), "every entry was reached");
}

// M-02
#[test]
fn durable_context_outside_tools_prompts_and_resources_fails_build() {
    async fn asks(cx: Durable) -> Result<Vec<String>> {
        drop(cx);
        Ok(Vec::new())
    }
    async fn raw(cx: Durable) -> Result<()> {
        drop(cx);
        Ok(())
    }
    async fn greet() -> &'static str {
        "hello"
    }
    let argument = outlive::wire::PromptArgument::new("name");
    let prompt = Prompt::new("greet", greet).argument(argument).complete("name", asks);
    let error = builder([]).prompt(prompt).build().unwrap_err().to_string();
    assert!(error.contains("`name`") && error.contains("takes `Durable`"), "{error}");
    let template = ResourceTemplate::new("mem://{name}", "mem", greet).complete("name", asks);
    let error = builder([]).resource_template(template).build().unwrap_err().to_string();
    assert!(error.contains("`name`") && error.contains("takes `Durable`"), "{error}");
    let error = builder([]).custom_method("com.example/ask", raw).build().unwrap_err().to_string();
    assert!(error.contains("`com.example/ask`") && error.contains("takes `Durable`"), "{error}");
}
