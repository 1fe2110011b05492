//! Journals that are offloaded to the store because they are too large or contain a secret.

use std::sync::Arc;

use outlive::{
    Form,
    server::{Durable, Result, SealKeys, Server, Tool, durable::Secret, tasks::TaskConfig},
    store::MemoryStore,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::pipe::{Pipe, error, result, text};

#[derive(Deserialize, JsonSchema, Form)]
struct Sure {
    yes: bool,
}

async fn large(cx: Durable) -> Result<String> {
    let page: String = cx.step("page", async || Ok("x".repeat(100_000))).await?;
    let first: Sure = cx.elicit("first", "Sure?").await?;
    let second: Sure = cx.elicit("second", "Really?").await?;
    Ok(format!("{} {} {}", page.len(), first.yes, second.yes))
}

async fn secret(cx: Durable) -> Result<String> {
    let key: Secret<String> = cx.step("key", async || Ok(Secret::new("s3cr3t".to_owned()))).await?;
    let sure: Sure = cx.elicit("sure", "Sure?").await?;
    Ok(format!("{} {}", key.expose().len(), sure.yes))
}

fn server(store: &Arc<MemoryStore>) -> Server {
    Server::builder("spills", "1")
        .tasks(TaskConfig::new(Arc::clone(store) as _))
        .seal_keys(SealKeys::new([3; 32]))
        .tool(Tool::new("large", large))
        .tool(Tool::new("secret", secret))
        .build()
        .unwrap()
}

async fn round(server: &Server, tool: &str, state: Option<&Value>, answered: &str) -> Value {
    let mut call = json!({"name": tool});
    if let Some(state) = state {
        call["requestState"] = state.clone();
        call["inputResponses"] = json!({answered: {"action": "accept", "content": {"yes": true}}});
    }
    let mut pipe = Pipe::open(server);
    pipe.modern_with(json!({"elicitation": {}}), "tools/call", call).await
}

// The store is shared, so the client may continue on any replica.
#[tokio::test(start_paused = true)]
async fn journal_too_large_for_request_state_is_offloaded() {
    let store = Arc::new(MemoryStore::new());
    let first = result(&round(&server(&store), "large", None, "").await);
    let state = &first["requestState"];
    assert!(
        state.as_str().unwrap().len() < 2_000,
        "the request state has a reference, not the journal"
    );
    let second = result(&round(&server(&store), "large", Some(state), "first").await);
    let done = round(&server(&store), "large", Some(&second["requestState"]), "second").await;
    assert_eq!(text(&result(&done)), "100000 true true");
    let elsewhere = Arc::new(MemoryStore::new());
    let lost = round(&server(&elsewhere), "large", Some(state), "first").await;
    assert_eq!(error(&lost)["code"], -32602, "the request state needs its journal: {lost}");
}

#[tokio::test(start_paused = true)]
async fn secret_is_offloaded_and_not_in_request_state() {
    let store = Arc::new(MemoryStore::new());
    let first = result(&round(&server(&store), "secret", None, "").await);
    let done = round(&server(&store), "secret", Some(&first["requestState"]), "sure").await;
    assert_eq!(text(&result(&done)), "6 true");
}
