//! Event stores: custom stores, eviction and bounds.

use std::{
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, Mutex, atomic::Ordering},
    time::Duration,
};

use outlive::server::http::{Event, EventStore, HttpConfig, MemoryEventStore, StreamKey};
use serde_json::json;

use crate::support::http::{HttpFixture, Request, Session};

/// An event store that keeps every event and records each operation.
#[derive(Clone, Default)]
struct Witness(Arc<Mutex<Seen>>);

#[derive(Default)]
struct Seen {
    events: Vec<(StreamKey, Event)>,
    forgotten: Vec<String>,
}

impl EventStore for Witness {
    fn append(&self, stream: &StreamKey, event: Event) {
        self.0.lock().unwrap().events.push((stream.clone(), event));
    }

    fn replay<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
    ) -> Pin<Box<dyn Future<Output = Vec<Event>> + Send + 'a>> {
        let seen = self.0.lock().unwrap();
        let wanted = |(key, event): &&(StreamKey, Event)| key == stream && event.number > after;
        Box::pin(ready(seen.events.iter().filter(wanted).map(|(_, event)| event.clone()).collect()))
    }

    fn forget(&self, session: &str) {
        self.0.lock().unwrap().forgotten.push(session.into());
    }
}

fn count(session: &Session, to: u32, width: usize) -> Request {
    session
        .call("count", json!({"key": "c", "to": to, "width": width}))
        .meta("progressToken", json!(1))
}

#[tokio::test]
async fn custom_event_store_receives_events_in_order_and_replays_them() {
    let store = Witness::default();
    let server = HttpFixture::with(HttpConfig::new().event_store(store.clone())).await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(count(&session, 2, 0)).await;
    let (event, _) = stream.said().await;
    stream.cut();
    server.world.release("c");
    server.world.release("c");
    server.world.finished("c").await;
    let response = server.send(session.resume(&event.id.unwrap())).await;
    assert!(response.messages().last().unwrap().get("result").is_some());
    let seen = store.0.lock().unwrap();
    assert!(seen.events.iter().all(|(key, _)| *key.session == *session.id));
    let numbers: Vec<u64> = seen.events.iter().map(|(_, event)| event.number).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    assert!(seen.events[0].1.data.is_empty() && numbers.len() >= 3);
}

#[tokio::test]
async fn event_store_forgets_ended_sessions() {
    // HTTP25-33
    let store = Witness::default();
    let config = HttpConfig::new().event_store(store.clone()).max_sessions(1);
    let server = HttpFixture::with(config).await;
    let deleted = server.session("2025-11-25").await;
    assert_eq!(server.send(deleted.delete()).await.status(), 204);
    let displaced = server.session("2025-11-25").await;
    let last = server.session("2025-11-25").await;
    server.serving.shutdown().await;
    assert_eq!(store.0.lock().unwrap().forgotten, [deleted.id, displaced.id, last.id]);
}

#[tokio::test]
async fn bounded_event_store_drops_oldest_events_and_keeps_result() {
    // SEC-06
    let server =
        HttpFixture::with(HttpConfig::new().event_store(MemoryEventStore::new(2_000))).await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(count(&session, 40, 100)).await;
    let first = stream.event().await.unwrap().id.unwrap();
    stream.cut();
    for _ in 1..=40 {
        server.world.stepped("c").await;
        server.world.release("c");
    }
    server.world.finished("c").await;
    let messages = server.send(session.resume(&first)).await.messages();
    let (last, steps) = messages.split_last().unwrap();
    assert_eq!(last["result"]["content"][0]["text"], "counted 40");
    let told: Vec<u64> =
        steps.iter().map(|step| step["params"]["progress"].as_u64().unwrap()).collect();
    assert!(!told.is_empty() && told.len() < 20, "{told:?}");
    assert_eq!(told, (told[0]..=40).collect::<Vec<_>>(), "the newest events, without a gap");
}

#[tokio::test]
async fn event_over_store_bound_does_not_hide_result() {
    let server =
        HttpFixture::with(HttpConfig::new().event_store(MemoryEventStore::new(2_000))).await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(count(&session, 1, 5_000)).await;
    let first = stream.event().await.unwrap().id.unwrap();
    stream.message().await;
    stream.cut();
    let mut resumed = server.open(session.resume(&first)).await;
    // Two round trips, so that the resumed stream has read the store without finding the event.
    for _ in 0..2 {
        server.send(session.request("ping")).await;
    }
    server.world.release("c");
    assert_eq!(resumed.message().await["result"]["content"][0]["text"], "counted 1");
    resumed.ended().await;
}

#[tokio::test]
async fn ended_streams_do_not_evict_running_stream() {
    let server = HttpFixture::with(HttpConfig::new().stream_after(Duration::ZERO)).await;
    let session = server.session("2025-11-25").await;
    let mut stream = server.open(session.call("wait", json!({"key": "w"})).id("long")).await;
    let first = stream.event().await.unwrap().id.unwrap();
    stream.cut();
    for _ in 0..200 {
        let echo = session.call("echo", json!({"text": "x"})).accept("text/event-stream");
        assert_eq!(server.send(echo).await.messages().len(), 1);
    }
    server.world.release("w");
    let messages = server.send(session.resume(&first)).await.messages();
    assert_eq!(messages[0]["id"], "long");
}

#[tokio::test]
async fn non_reading_client_uses_memory_up_to_bound() {
    // SEC-06: a connected client that does not read blocks its call. After the client disconnects,
    // the events of the call are stored up to the bound.
    const LINES: usize = 20_000;
    let server = HttpFixture::start().await;
    let session = server.session("2025-11-25").await;
    let shout = session.call("shout", json!({"key": "s", "lines": LINES, "bytes": 1_000})).id(1);
    let mut stream = server.open(&shout).await;
    let first = stream.event().await.unwrap().id.unwrap();
    for _ in 0..20 {
        assert_eq!(server.send(session.request("ping")).await.status(), 200);
    }
    let shouted = server.world.shouted.load(Ordering::Relaxed);
    assert!(shouted < LINES, "the handler waits for its reader");
    stream.cut();
    server.world.finished("s").await;
    let response = server.send(session.resume(&first)).await;
    assert!(response.body.len() < 2 << 20, "{} bytes", response.body.len());
    let messages = response.messages();
    assert!(messages.len() > 100);
    assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "shouted");
}
