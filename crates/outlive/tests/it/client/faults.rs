//! Partial results of our own server, read by our own client over a way that breaks: on real sockets,
//! with tasks in a file. The tests that are named by an id are those of the specification of streams.

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

/// Both ways of sending segments, and looks that are too seldom to be in the way.
const SELDOM: Change = |config| {
    config.response_modes(ALL).partial_results(true).poll_interval(Duration::from_secs(60))
};
/// The same, and looks all the time.
const OFTEN: Change = |config| {
    config.response_modes(ALL).partial_results(true).poll_interval(Duration::from_millis(20))
};

/// How long anything here may take. Only a test that fails waits so long.
const GUARD: Duration = Duration::from_secs(20);

/// A server, a way to it, and a file in which its tasks are.
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

    /// Begins a tool that emits one block after the other, each when the gate lets it.
    async fn tell(&self, client: &Client, blocks: usize) -> ToolStream {
        let script = json!({"batches": vec![1; blocks], "end": "empty"});
        guarded(client.stream_tool("always", script).into_future()).await.unwrap()
    }

    /// Reads these, and lets the tool go on behind each.
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
    tokio::time::timeout(GUARD, work).await.expect("it does not hang")
}

/// The number of the next segment, which is also what it says.
async fn next(stream: &mut ToolStream) -> Option<Result<u64, Error>> {
    let segment = guarded(stream.next()).await?;
    Some(segment.map(|segment| {
        let ContentBlock::Text(text) = &segment.block else { panic!("{segment:?}") };
        assert_eq!(text.text, segment.number.to_string());
        segment.number
    }))
}

/// There are no more segments, and the result has all of them.
async fn ends_with(stream: &mut ToolStream, count: u64) {
    assert!(next(stream).await.is_none());
    let whole: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
    assert_eq!(result_text(&guarded(stream.finish()).await.unwrap()), whole.join("\n"));
}

/// From which numbers on the client has read again.
fn resumed(proxy: &Proxy) -> Vec<Option<u64>> {
    let asked = proxy.requests("tasks/result");
    asked.iter().map(|request| request["params"]["lastSeqNr"].as_u64()).collect()
}

// S-T05, S-45, S-54
#[tokio::test]
async fn s_t05_a_stream_of_events_is_not_disturbed_by_what_stands_between_them() {
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
    // Each event was a message by itself, and all of them had the id of the call.
    let call = &stage.proxy.requests("tools/call")[0];
    let events = stage.proxy.events();
    let parts: Vec<&Value> =
        events.iter().filter(|event| event.to_string().contains("partial-content")).collect();
    assert!(parts.len() >= 4 && parts.iter().all(|part| part["id"] == call["id"]), "{parts:?}");
    assert!(resumed(&stage.proxy).is_empty());
}

// S-T06, S-73, S-78
#[tokio::test]
async fn s_t06_a_stream_that_is_cut_goes_on_behind_the_last_number() {
    for cut in [Fault::CutAfter("\"seqNr\":3"), Fault::CutInside("\"seqNr\":4")] {
        let stage = Stage::new(OFTEN).await;
        // Nothing is kept of streams here, and the way back is a hard one.
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
async fn s_t06_a_stream_that_is_cut_is_taken_up_where_the_server_has_kept_it() {
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
async fn s_t07_what_did_not_arrive_is_read_from_before_the_gap() {
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
async fn s_t09_a_task_whose_time_is_over_leaves_its_stream_incomplete() {
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
async fn s_t12_a_segment_that_comes_twice_counts_once() {
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
async fn s_t12_a_segment_that_comes_twice_and_differs_is_a_breach() {
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
async fn s_t13_a_server_without_modes_is_waited_for() {
    let plain: Change = |config: TaskConfig| config.poll_interval(Duration::from_millis(20));
    let stage = Stage::new(plain).await;
    // It is looked at until it is over, whatever happens to a look.
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
    assert_eq!(call["params"]["task"], json!({}), "nothing of what it does not know");
    assert!(
        stage.proxy.events().iter().all(|event| event["result"].get("partial-content").is_none())
    );
    assert!(stage.proxy.has_done_it_all());
}

// S-T15, S-59, S-71
#[tokio::test]
async fn s_t15_the_stream_and_a_poll_beside_it_are_one_order() {
    let stage = Stage::new(OFTEN).await;
    let held = Gate::default();
    stage.proxy.once("tools/call", Fault::Hold("\"seqNr\":2", held.clone()));
    let client = stage.client(Version::V2025_11_25).await;
    let mut stream = stage.tell(&client, 4).await;
    stage.read(&mut stream, 1..=1).await;
    // The stream stands still; what it holds back is read beside it.
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
async fn s_t24_what_comes_after_the_end_is_dropped() {
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
    // And the client goes on.
    stage.world.gate.open(1);
    let mut stream = stage.tell(&client, 1).await;
    assert_eq!(next(&mut stream).await.unwrap().unwrap(), 1);
    ends_with(&mut stream, 1).await;
}

/// What the client has asked for beside `tasks/get`.
fn pulled(proxy: &Proxy) -> Vec<u64> {
    let asked = proxy.requests("tasks/get");
    let after = |request: &Value| request["params"]["_meta"]["dev.outlive/afterSeq"].as_u64();
    asked.iter().filter_map(after).collect()
}

// S-91, S-93
#[tokio::test]
async fn segments_are_pushed_through_a_subscription() {
    let stage = Stage::new(SELDOM).await;
    let client = stage.client(Version::V2026_07_28).await;
    let mut stream = stage.tell(&client, 5).await;
    // Each is there before the next one is made.
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
async fn a_push_that_breaks_is_gone_on_with_by_reading() {
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
async fn what_a_push_leaves_out_repeats_or_turns_around_is_put_right() {
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
        // Live, and not only at the end: the tool stands before its fourth block.
        for number in 2..=3 {
            assert_eq!(next(&mut stream).await.unwrap().unwrap(), number);
        }
        assert!(!is_dropped || pulled(&stage.proxy).contains(&1));
        stage.world.gate.open(1);
        stage.read(&mut stream, 4..=4).await;
        ends_with(&mut stream, 4).await;
    }
}

/// As a `Stream`, which forgets what it waits for each time that something else happens.
#[tokio::test]
async fn a_stream_that_is_polled_in_between_loses_nothing() {
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
