//! Partial results of our server, read by our client through a proxy that breaks connections. The
//! tests use real sockets and tasks in a file.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use outlive::{
    client::{
        Client, ClientBuilder, ClientError, Error,
        request::{ToolStream, result_text},
    },
    server::{
        http::{HttpConfig, HttpServer},
        tasks::TaskConfig,
    },
    store::SqliteStore,
    wire::{ContentBlock, Version},
};
use serde_json::{Value, json};

use super::kit::builder;
use crate::{
    streaming::stage::{ALL, Change, World},
    support::{
        gate::Gate,
        proxy::{Fault, Proxy},
    },
};

/// Both ways of sending segments, with polls too rare to interfere.
const SELDOM: Change = |config| {
    config.response_modes(ALL).partial_results(true).poll_interval(Duration::from_secs(60))
};
/// Both ways of sending segments, with frequent polls.
const OFTEN: Change = |config| {
    config.response_modes(ALL).partial_results(true).poll_interval(Duration::from_millis(20))
};

/// Upper limit of every wait. Only a failing test waits this long.
const GUARD: Duration = Duration::from_secs(20);

/// A server, a proxy in front of it, and the folder of its task store.
struct Stage {
    world: World,
    proxy: Proxy,
    folder: PathBuf,
    _serving: HttpServer,
}

impl Stage {
    async fn new(change: Change) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-faults-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        let store = SqliteStore::open(folder.join("tasks.db")).unwrap();
        let world = World::over(Arc::new(store), change);
        let serving = world.server.serve_http("127.0.0.1:0", HttpConfig::new()).await.unwrap();
        let proxy = Proxy::before(serving.address()).await;
        Self { world, proxy, folder, _serving: serving }
    }

    async fn client(&self, version: Version) -> Client {
        let client = streaming().protocol_version(version).connect(self.proxy.url.as_str());
        guarded(client).await.unwrap()
    }

    /// Starts a tool that emits one block at a time, each when the gate opens.
    async fn tell(&self, client: &Client, blocks: usize) -> ToolStream {
        let script = json!({"batches": vec![1; blocks], "end": "empty"});
        guarded(client.stream_tool("always", script).into_future()).await.unwrap()
    }

    /// Reads these segments and opens the gate after each.
    async fn read(&self, stream: &mut ToolStream, numbers: std::ops::RangeInclusive<u64>) {
        for number in numbers {
            assert_eq!(next(stream).await.unwrap().unwrap(), number);
            self.world.gate.open(1);
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn streaming() -> ClientBuilder {
    builder().partial_results().limits(|limits| {
        limits.min_poll_interval = Duration::from_millis(5);
        limits.default_poll_interval = Duration::from_millis(10);
        limits.max_poll_interval = Duration::from_secs(60);
    })
}

async fn guarded<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(GUARD, work).await.expect("the operation ends within the time limit")
}

/// Returns the number of the next segment, which equals its text.
async fn next(stream: &mut ToolStream) -> Option<Result<u64, Error>> {
    let segment = guarded(stream.next()).await?;
    Some(segment.map(|segment| {
        let ContentBlock::Text(text) = &segment.block else { panic!("{segment:?}") };
        assert_eq!(text.text, segment.number.to_string());
        segment.number
    }))
}

/// Asserts that the stream has ended and that the result has all `count` segments.
async fn ends_with(stream: &mut ToolStream, count: u64) {
    assert!(next(stream).await.is_none());
    let whole: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
    assert_eq!(result_text(&guarded(stream.finish()).await.unwrap()), whole.join("\n"));
}

/// Returns the `lastSeqNr` of every `tasks/result` request.
fn resumed(proxy: &Proxy) -> Vec<Option<u64>> {
    let asked = proxy.requests("tasks/result");
    asked.iter().map(|request| request["params"]["lastSeqNr"].as_u64()).collect()
}

// S-T05, S-45, S-54
#[tokio::test]
async fn event_stream_with_foreign_notifications_delivers_all_segments() {
    let stage = Stage::new(SELDOM).await;
    let status = |_: &str| {
        json!({"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": {
            "taskId": "another", "status": "working", "ttl": 60000,
            "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z",
        }})
        .to_string()
    };
    stage.proxy.once("tools/call", Fault::Append("\"seqNr\":2", status));
    let client = stage.client(Version::V2025_11_25).await;
    let mut stream = stage.tell(&client, 4).await;
    stage.read(&mut stream, 1..=4).await;
    ends_with(&mut stream, 4).await;
    assert!(stage.proxy.has_done_it_all());
    // Each event was one message with the ID of the call.
    let call = &stage.proxy.requests("tools/call")[0];
    let events = stage.proxy.events();
    let parts: Vec<&Value> =
        events.iter().filter(|event| event.to_string().contains("partial-content")).collect();
    assert!(parts.len() >= 4 && parts.iter().all(|part| part["id"] == call["id"]), "{parts:?}");
    assert!(resumed(&stage.proxy).is_empty());
}

// S-T06, S-73, S-78
#[tokio::test]
async fn cut_stream_without_event_log_resumes_after_last_segment() {
    for cut in [Fault::CutAfter("\"seqNr\":3"), Fault::CutInside("\"seqNr\":4")] {
        let stage = Stage::new(OFTEN).await;
        // Without resumable streams and with failing polls, only `tasks/result` is left.
        stage.proxy.always("GET", Fault::Refuse(405, None));
        stage.proxy.once("tools/call", cut);
        let client = stage.client(Version::V2025_11_25).await;
        let mut stream = stage.tell(&client, 5).await;
        stage.read(&mut stream, 1..=2).await;
        stage.proxy.once("tasks/result", Fault::Refuse(429, Some(0)));
        stage.proxy.once("tasks/result", Fault::Refuse(503, None));
        stage.proxy.once("tasks/result", Fault::LoseAnswer);
        stage.read(&mut stream, 3..=5).await;
        ends_with(&mut stream, 5).await;
        assert!(stage.proxy.has_done_it_all());
        let asked = stage.proxy.requests("tasks/result");
        assert!(resumed(&stage.proxy).contains(&Some(3)), "{asked:?}");
        let call = &stage.proxy.requests("tools/call")[0];
        assert!(asked.iter().all(|request| request["id"] != call["id"]), "{asked:?}");
    }
}

// S-T06
#[tokio::test]
async fn cut_stream_with_event_log_resumes_by_get() {
    let stage = Stage::new(SELDOM).await;
    stage.proxy.once("tools/call", Fault::CutAfter("\"seqNr\":3"));
    let client = stage.client(Version::V2025_11_25).await;
    let mut stream = stage.tell(&client, 5).await;
    stage.read(&mut stream, 1..=5).await;
    ends_with(&mut stream, 5).await;
    assert!(stage.proxy.has_done_it_all());
    assert!(!stage.proxy.requests("GET").is_empty());
    assert!(resumed(&stage.proxy).is_empty());
}

// S-T07, S-73
#[tokio::test]
async fn missing_segments_are_fetched_from_before_the_gap() {
    let stage = Stage::new(SELDOM).await;
    stage.proxy.once("tools/call", Fault::Drop(&["\"seqNr\":2", "\"seqNr\":4"]));
    let client = stage.client(Version::V2025_11_25).await;
    let mut stream = stage.tell(&client, 5).await;
    for number in 1..=5 {
        stage.proxy.came(&format!("\"seqNr\":{number}")).await;
        stage.world.gate.open(1);
    }
    for number in 1..=5 {
        assert_eq!(next(&mut stream).await.unwrap().unwrap(), number);
    }
    ends_with(&mut stream, 5).await;
    assert!(stage.proxy.has_done_it_all());
    assert_eq!(resumed(&stage.proxy), [Some(1)]);
}

// S-T09, S-58
#[tokio::test]
async fn stream_of_expired_task_fails_as_incomplete() {
    for is_cut in [false, true] {
        let stage = Stage::new(OFTEN).await;
        if is_cut {
            stage.proxy.always("GET", Fault::Refuse(405, None));
            stage.proxy.once("tools/call", Fault::CutAfter("\"seqNr\":2"));
        }
        let client = stage.client(Version::V2025_11_25).await;
        let call = client.stream_tool("ticks", json!({})).task_ttl(Duration::from_millis(300));
        let mut stream = guarded(call.into_future()).await.unwrap();
        let why = guarded(stream.finish()).await.unwrap_err();
        assert!(matches!(why, Error::Client(ClientError::Incomplete(_))), "{why}");
        assert!(stream.segment_count() >= 2, "{why}");
        assert!(guarded(stream.next()).await.is_none());
        assert!(stage.proxy.has_done_it_all());
    }
}

// S-T12, S-71
#[tokio::test]
async fn duplicate_segment_is_ignored() {
    let stage = Stage::new(SELDOM).await;
    stage.proxy.once("tools/call", Fault::Append("\"seqNr\":2", str::to_owned));
    let client = stage.client(Version::V2025_11_25).await;
    let mut stream = stage.tell(&client, 3).await;
    stage.read(&mut stream, 1..=3).await;
    ends_with(&mut stream, 3).await;
    assert!(stage.proxy.has_done_it_all());
}

// S-T12, S-75
#[tokio::test]
async fn duplicate_segment_with_other_content_is_protocol_violation() {
    let stage = Stage::new(SELDOM).await;
    let other = |event: &str| event.replace("\"text\":\"2\"", "\"text\":\"two\"");
    stage.proxy.once("tools/call", Fault::Append("\"seqNr\":2", other));
    let client = stage.client(Version::V2025_11_25).await;
    let mut stream = stage.tell(&client, 3).await;
    stage.read(&mut stream, 1..=2).await;
    let mut last = next(&mut stream).await.unwrap();
    if last.is_ok() {
        last = next(&mut stream).await.unwrap();
    }
    assert!(matches!(last, Err(Error::ProtocolViolation(_))), "{last:?}");
    assert!(stage.proxy.has_done_it_all());
}

// S-T13, S-09, T1C-08
#[tokio::test]
async fn server_without_response_modes_is_polled_to_the_end() {
    let plain: Change = |config: TaskConfig| config.poll_interval(Duration::from_millis(20));
    let stage = Stage::new(plain).await;
    // The client polls until the task ends, even if single polls fail.
    stage.proxy.once("tasks/get", Fault::Refuse(429, Some(0)));
    stage.proxy.once("tasks/get", Fault::LoseAnswer);
    stage.proxy.once("tasks/result", Fault::LoseAnswer);
    let client = stage.client(Version::V2025_11_25).await;
    stage.world.gate.open(3);
    let mut stream = stage.tell(&client, 3).await;
    for number in 1..=3 {
        assert_eq!(next(&mut stream).await.unwrap().unwrap(), number);
    }
    ends_with(&mut stream, 3).await;
    let call = &stage.proxy.requests("tools/call")[0];
    assert_eq!(call["params"]["task"], json!({}), "no response modes are requested");
    assert!(
        stage.proxy.events().iter().all(|event| event["result"].get("partial-content").is_none())
    );
    assert!(stage.proxy.has_done_it_all());
}

// S-T15, S-59, S-71
#[tokio::test]
async fn stream_and_concurrent_poll_deliver_segments_in_order() {
    let stage = Stage::new(OFTEN).await;
    let held = Gate::default();
    stage.proxy.once("tools/call", Fault::Hold("\"seqNr\":2", held.clone()));
    let client = stage.client(Version::V2025_11_25).await;
    let mut stream = stage.tell(&client, 4).await;
    stage.read(&mut stream, 1..=1).await;
    // The stream stalls; the client polls the segments that the stream holds back.
    held.arrived().await;
    stage.read(&mut stream, 2..=2).await;
    assert!(resumed(&stage.proxy).contains(&Some(1)));
    held.open(1);
    stage.read(&mut stream, 3..=4).await;
    ends_with(&mut stream, 4).await;
    assert!(stage.proxy.has_done_it_all());
}

// S-T24, S-50
#[tokio::test]
async fn segment_after_last_response_is_ignored() {
    let stage = Stage::new(SELDOM).await;
    let late = |event: &str| {
        let mut late: Value = serde_json::from_str(event).unwrap();
        late["result"]["partial-content"] = json!([{"type": "text", "text": "4", "seqNr": 4}]);
        late.to_string()
    };
    stage.proxy.once("tools/call", Fault::Append("\"isComplete\":true", late));
    let client = stage.client(Version::V2025_11_25).await;
    let mut stream = stage.tell(&client, 3).await;
    stage.read(&mut stream, 1..=3).await;
    ends_with(&mut stream, 3).await;
    assert!(stage.proxy.has_done_it_all());
    // The client stays usable.
    stage.world.gate.open(1);
    let mut stream = stage.tell(&client, 1).await;
    assert_eq!(next(&mut stream).await.unwrap().unwrap(), 1);
    ends_with(&mut stream, 1).await;
}

/// Returns the `afterSeq` of every `tasks/get` request.
fn pulled(proxy: &Proxy) -> Vec<u64> {
    let asked = proxy.requests("tasks/get");
    let after = |request: &Value| request["params"]["_meta"]["dev.outlive/afterSeq"].as_u64();
    asked.iter().filter_map(after).collect()
}

// S-91, S-93
#[tokio::test]
async fn modern_segments_arrive_through_subscription() {
    let stage = Stage::new(SELDOM).await;
    let client = stage.client(Version::V2026_07_28).await;
    let mut stream = stage.tell(&client, 5).await;
    // Each segment arrives before the tool emits the next one.
    stage.read(&mut stream, 1..=5).await;
    ends_with(&mut stream, 5).await;
    assert!(pulled(&stage.proxy).is_empty());
    let listens = stage.proxy.requests("subscriptions/listen");
    let wanted = |listen: &Value| {
        listen["params"]["notifications"]["dev.outlive/taskPartials"][0]["afterSeq"] == 0
    };
    assert!(listens.iter().any(wanted), "{listens:?}");
}

// S-90, S-91
#[tokio::test]
async fn broken_subscription_falls_back_to_polling() {
    for cut in
        [Fault::CutAfter("\"seq\":2"), Fault::CutInside("\"seq\":3"), Fault::Refuse(503, None)]
    {
        let is_refused = matches!(cut, Fault::Refuse(..));
        let stage = Stage::new(OFTEN).await;
        stage.proxy.always("subscriptions/listen", cut);
        let client = stage.client(Version::V2026_07_28).await;
        let mut stream = stage.tell(&client, 5).await;
        stage.read(&mut stream, 1..=5).await;
        ends_with(&mut stream, 5).await;
        let from = if is_refused { 0 } else { 2 };
        assert!(pulled(&stage.proxy).iter().any(|after| *after >= from));
    }
}

// S-91, S-71, S-73
#[tokio::test]
async fn dropped_repeated_or_swapped_pushes_are_repaired() {
    for fault in [
        Fault::Drop(&["\"seq\":2"]),
        Fault::Swap("\"seq\":2"),
        Fault::Append("\"seq\":2", str::to_owned),
    ] {
        let is_dropped = matches!(fault, Fault::Drop(_));
        let stage = Stage::new(SELDOM).await;
        stage.proxy.always("subscriptions/listen", fault);
        let client = stage.client(Version::V2026_07_28).await;
        let mut stream = stage.tell(&client, 4).await;
        stage.read(&mut stream, 1..=1).await;
        stage.proxy.came("\"seq\":2").await;
        stage.world.gate.open(1);
        // The gap closes while the tool still runs: it has not emitted its fourth block.
        for number in 2..=3 {
            assert_eq!(next(&mut stream).await.unwrap().unwrap(), number);
        }
        assert!(!is_dropped || pulled(&stage.proxy).contains(&1));
        stage.world.gate.open(1);
        stage.read(&mut stream, 4..=4).await;
        ends_with(&mut stream, 4).await;
    }
}

/// Uses `Stream` in a `select!` that drops the pending `next` future at every tick.
#[tokio::test]
async fn stream_with_dropped_next_futures_loses_no_segment() {
    for version in [Version::V2025_11_25, Version::V2026_07_28] {
        let stage = Stage::new(OFTEN).await;
        stage.proxy.always("GET", Fault::Refuse(405, None));
        stage.proxy.once("tools/call", Fault::CutAfter("\"seqNr\":2"));
        let client = stage.client(version).await;
        let mut stream = stage.tell(&client, 4).await;
        stage.world.gate.open(4);
        let mut seen = Vec::new();
        let reading = async {
            let mut tick = tokio::time::interval(Duration::from_millis(1));
            loop {
                tokio::select! {
                    biased;
                    _ = tick.tick() => {}
                    segment = stream.next() => match segment {
                        Some(segment) => seen.push(segment.unwrap().number),
                        None => break,
                    },
                }
            }
        };
        guarded(reading).await;
        assert_eq!(seen, [1, 2, 3, 4], "{version}");
    }
}
