//! Input requests as events, before and inside a task, without an input handler.

use std::time::Duration;

use outlive::{
    client::{
        Client,
        input::{InputCapabilities, InputKind, InputResponse},
        request::result_text,
        tasks::TaskEvent,
    },
    server::{
        Durable, Result, Server,
        tasks::{TaskConfig, TaskPolicy},
    },
    tool,
    wire::Version,
};
use serde_json::json;

use super::kit::{Name, Place, Wire, builder, builder_of_server};

/// Elicits once before it becomes a task and once inside the task.
#[tool]
async fn order(cx: Durable) -> Result<String> {
    let who: Name = cx.elicit("who", "Who are you?").await?;
    cx.sleep("nap", Duration::from_millis(300)).await?;
    let again: Name = cx.elicit("sure", "Are you sure?").await?;
    Ok(format!("a hat for {} ({})", who.name, again.name))
}

fn server() -> Server {
    let policy = TaskPolicy::Auto { after: Duration::from_millis(50) };
    builder_of_server()
        .tool(order::tool().task(policy))
        .tasks(TaskConfig::in_memory().poll_interval(Duration::from_millis(20)))
        .build()
        .unwrap()
}

async fn client(wire: Wire, version: Version) -> (Place, Client) {
    let place = Place::of(&server(), wire).await;
    let builder = builder()
        .input_capabilities(InputCapabilities { form: true, ..Default::default() })
        .limits(|limits| limits.min_poll_interval = Duration::from_millis(5));
    let client = place.connect(builder, Some(version)).await;
    (place, client)
}

#[tokio::test]
async fn input_requests_without_input_handler_are_events_in_every_version() {
    for wire in [Wire::Memory, Wire::Http] {
        for version in [Version::V2026_07_28, Version::V2025_11_25, Version::V2025_06_18] {
            let (_place, client) = client(wire, version).await;
            let call = client.start_tool("order", json!({})).input_as_events();
            let mut handle = call.await.unwrap();
            let mut events = handle.events();
            let (mut asked, mut done) = (Vec::new(), None);
            while let Some(event) = events.next().await {
                match event.unwrap() {
                    TaskEvent::Input(input) => {
                        let InputKind::Form(form) = &input.request else { panic!("{input:?}") };
                        asked.push(form.message.clone());
                        let response = InputResponse::accept(json!({"name": "Ada"}));
                        events.respond(&input, response).await.unwrap();
                    }
                    TaskEvent::Done(result) => done = Some(result_text(&result)),
                    _ => {}
                }
            }
            assert_eq!(asked, ["Who are you?", "Are you sure?"], "{wire:?} {version}");
            assert_eq!(done.as_deref(), Some("a hat for Ada (Ada)"), "{wire:?} {version}");
        }
    }
}

#[tokio::test]
async fn input_response_violating_form_is_rejected_before_sending() {
    let (_place, client) = client(Wire::Memory, Version::V2026_07_28).await;
    let mut handle = client.start_tool("order", json!({})).input_as_events().await.unwrap();
    let mut events = handle.events();
    let Some(Ok(TaskEvent::Input(input))) = events.next().await else { panic!("no request") };
    let error =
        events.respond(&input, InputResponse::accept(json!({"name": 7}))).await.unwrap_err();
    assert!(error.to_string().contains("name"), "{error}");
    events.respond(&input, InputResponse::Decline).await.unwrap();
    let Some(Ok(TaskEvent::Done(result))) = events.next().await else { panic!("no result") };
    assert_eq!(result_text(&result), "the user declined the input request `who`");
    assert!(events.next().await.is_none());
    assert!(handle.is_terminal());
}

#[tokio::test]
async fn call_cancelled_before_its_task_is_terminal() {
    let (_place, client) = client(Wire::Memory, Version::V2026_07_28).await;
    let mut handle = client.start_tool("order", json!({})).input_as_events().await.unwrap();
    assert!(!handle.is_terminal() && handle.task_id().is_none());
    assert!(matches!(handle.events().next().await, Some(Ok(TaskEvent::Input(_)))));
    handle.cancel().await.unwrap();
    assert!(handle.wait().await.is_err() && handle.is_terminal());
}

#[tokio::test]
async fn wait_without_input_handler_fails_at_input_request() {
    let (_place, client) = client(Wire::Memory, Version::V2026_07_28).await;
    let mut handle = client.start_tool("order", json!({})).input_as_events().await.unwrap();
    let error = handle.wait().await.unwrap_err().to_string();
    assert!(error.contains("the client has no input handler"), "{error}");
}
