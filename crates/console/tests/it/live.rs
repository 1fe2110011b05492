//! Event streams: hints, limits and their end.

use std::{future::poll_fn, time::Duration};

use outlive::server::http::{EventSource, StaticTokens};
use serde_json::json;

use crate::desk::{ADA, ANN, Ask, BEN, Desk};

/// A stream that is read event by event.
struct Events(Box<dyn EventSource>, String);

impl Events {
    async fn open(desk: &Desk, query: &str, token: &str) -> Self {
        let ask = Ask::get(&format!("/console/api/v1/stream{query}")).bearer(token);
        let reply = desk.send(ask).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/event-stream")));
        Self(reply.events.expect("a stream"), String::new())
    }

    /// Returns the next event without its retry time; `None` at the end of the stream.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.1.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.1 = rest;
                match event.starts_with("retry:") {
                    true => continue,
                    false => return Some(event),
                }
            }
            let bytes = poll_fn(|cx| self.0.poll_events(cx)).await?;
            self.1.push_str(std::str::from_utf8(&bytes).expect("is text"));
        }
    }

    /// Returns the next event with this name.
    async fn named(&mut self, name: &str) -> String {
        let wanted = format!("event: {name}\ndata: ");
        let found = async {
            loop {
                let event = self.next().await.expect("the stream continues");
                if let Some(data) = event.strip_prefix(&wanted) {
                    return data.to_owned();
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), found).await.expect("a hint in time")
    }
}

#[tokio::test]
async fn stream_reports_inbox_and_task_changes() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ben"], 1).await;
    let mut events = Events::open(&desk, "?tasks=t1", ADA).await;
    assert_eq!(events.named("inbox").await, "{\"count\":1}");
    let task = events.named("task").await;
    assert!(task.starts_with("{\"id\":\"t1\",\"state\":\"input-required\","), "{task}");
    let output = events.named("output").await;
    assert!(output.starts_with("{\"id\":\"t1\",\"last\":0,\"updated_at\":\"20"), "{output}");
    let ask = Ask::post("/console/api/v1/tasks/t1/cancel", "").bearer(ADA);
    assert_eq!(desk.send(ask).await.status, 200);
    assert_eq!(events.named("inbox").await, "{\"count\":0}");
    assert!(events.named("task").await.contains("\"state\":\"cancelled\""));
}

#[tokio::test]
async fn stream_is_silent_about_foreign_tasks() {
    let desk = Desk::new();
    desk.approval("t1", "ann", &["ada"], 1).await;
    let mut events = Events::open(&desk, "?tasks=t1,t9", BEN).await;
    assert_eq!(events.named("inbox").await, "{\"count\":0}");
    let ask = Ask::post("/console/api/v1/tasks/t1/cancel", "").bearer(ADA);
    assert_eq!(desk.send(ask).await.status, 200);
    desk.approval("t2", "ann", &["ben"], 1).await;
    assert_eq!(events.next().await.as_deref(), Some("event: inbox\ndata: {\"count\":1}"));
}

#[tokio::test]
async fn ninth_stream_of_a_session_is_rejected_until_one_ends() {
    let desk = Desk::new();
    let ann = desk.signed_in(ANN).await;
    let open = || ann.get("/console/api/v1/stream");
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(open().await);
    }
    let ninth = open().await;
    assert_eq!((ninth.status, ninth.header("retry-after")), (429, Some("5")));
    assert_eq!(ninth.json()["remedy"], json!("wait, then retry"));
    streams.pop();
    assert_eq!(open().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn stream_of_a_revoked_credential_ends() {
    let desk = Desk::new();
    let mut events = Events::open(&desk, "", ANN).await;
    assert_eq!(events.named("inbox").await, "{\"count\":0}");
    desk.tokens.set(StaticTokens::new());
    assert_eq!(events.next().await, None);
}
