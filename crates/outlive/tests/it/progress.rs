//! Progress notifications: only with a token, increasing, and rate limited.

use std::time::Duration;

use outlive::server::{Args, Cx, Server, ServerBuilder, State, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{
    gate::Gate,
    pipe::{MODERN, Pipe, REVISIONS, with_meta},
};

/// Minimum interval between two progress notifications of a call.
const INTERVAL: Duration = Duration::from_millis(20);

#[derive(Deserialize, JsonSchema)]
struct Steps {
    /// The progress value of each step.
    values: Vec<f64>,
    /// Duration of each step.
    pause_ms: u64,
}

async fn work(Args(steps): Args<Steps>, cx: Cx) -> &'static str {
    for value in steps.values {
        cx.progress(value, 100.0, "");
        sleep(Duration::from_millis(steps.pause_ms)).await;
    }
    "done"
}

fn builder() -> ServerBuilder {
    Server::builder("test", "1").tool(Tool::new("work", work))
}

fn call(tool: &str, arguments: Value, token: Value) -> Value {
    let mut params = json!({"name": tool});
    params["arguments"] = arguments;
    params["_meta"]["progressToken"] = token;
    params
}

/// Calls a tool and returns the progress notifications before its response.
async fn told(pipe: &mut Pipe, params: Value) -> Vec<Value> {
    let id = pipe.send("tools/call", params).await;
    let mut messages = pipe.read_to(id).await;
    assert!(messages.pop().unwrap().get("result").is_some());
    messages
        .into_iter()
        .map(|message| {
            assert_eq!(message["method"], "notifications/progress");
            message["params"].clone()
        })
        .collect()
}

fn values(told: &[Value]) -> Vec<f64> {
    told.iter().map(|params| params["progress"].as_f64().unwrap()).collect()
}

// PROG-02, PROG-04
#[tokio::test(start_paused = true)]
async fn progress_without_token_is_not_sent() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&builder().build().unwrap(), version).await;
        let arguments = json!({"values": [1.0, 2.0], "pause_ms": 50});
        assert_eq!(
            told(&mut pipe, json!({"name": "work", "arguments": arguments})).await,
            Vec::<Value>::new()
        );
    }
}

// PROG-01, PROG-08, RPC-30
#[tokio::test(start_paused = true)]
async fn progress_token_is_echoed_byte_for_byte() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&builder().build().unwrap(), version).await;
        for token in ["7", "\"7\"", "-1", "9007199254740993", "\"\"", r#""a\"b\u00e9""#] {
            let mut params = call("work", json!({"values": [1.0], "pause_ms": 0}), json!("TOKEN"));
            if version == MODERN {
                params = with_meta(params);
            }
            let message =
                json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": params});
            let line = message.to_string().replace("\"TOKEN\"", token);
            pipe.send_raw(format!("{line}\n").as_bytes()).await;
            let told = pipe.read_line().await.unwrap();
            let expected = format!(r#"{{"progressToken":{token},"progress":1,"total":100}}"#);
            assert!(told.contains(&expected), "{version}: {told}");
            pipe.answer("x").await;
        }
    }
}

// PROG-01
#[tokio::test(start_paused = true)]
async fn progress_token_that_is_not_string_or_integer_is_rejected() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&builder().build().unwrap(), version).await;
        for token in [json!(1.5), json!(null), json!(true), json!([1]), json!({})] {
            let refusal = pipe.error("tools/call", call("work", json!({}), token.clone())).await;
            assert_eq!(refusal["code"], -32602, "{version}: {token}");
            assert!(refusal["message"].as_str().unwrap().contains("progressToken"), "{refusal}");
        }
    }
}

// PROG-03
#[tokio::test(start_paused = true)]
async fn progress_that_does_not_increase_is_dropped() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&builder().build().unwrap(), version).await;
        let arguments = json!({"values": [1.0, 1.0, 0.5, 2.0, -3.0, 2.0, 2.25], "pause_ms": 50});
        let told = told(&mut pipe, call("work", arguments, json!("t"))).await;
        assert_eq!(values(&told), [1.0, 2.0, 2.25], "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_that_is_not_finite_is_dropped() {
    let odd = async |cx: Cx| {
        for (done, total) in [
            (f64::NAN, None),
            (1.0, Some(f64::INFINITY)),
            (f64::INFINITY, None),
            (2.0, Some(f64::NAN)),
        ] {
            cx.progress(done, total, "");
            sleep(INTERVAL * 2).await;
        }
        "done"
    };
    let mut pipe =
        Pipe::open(&Server::builder("test", "1").tool(Tool::new("odd", odd)).build().unwrap());
    let told = told(&mut pipe, call("odd", json!({}), json!(1))).await;
    assert_eq!(
        told,
        [json!({"progressToken": 1, "progress": 1}), json!({"progressToken": 1, "progress": 2})]
    );
}

// PROG-02
#[tokio::test(start_paused = true)]
async fn progress_total_and_message_are_optional() {
    let tell = async |cx: Cx| {
        cx.progress(0.5, None, "");
        sleep(INTERVAL * 2).await;
        cx.progress(1.0, 2.5, "half way");
        sleep(INTERVAL * 2).await;
        "done"
    };
    let mut pipe =
        Pipe::open(&Server::builder("test", "1").tool(Tool::new("tell", tell)).build().unwrap());
    let told = told(&mut pipe, call("tell", json!({}), json!("t"))).await;
    let expected = [
        json!({"progressToken": "t", "progress": 0.5}),
        json!({"progressToken": "t", "progress": 1, "total": 2.5, "message": "half way"}),
    ];
    assert_eq!(told, expected);
}

// PROG-05
#[tokio::test(start_paused = true)]
async fn progress_faster_than_interval_sends_newest_value() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&builder().build().unwrap(), version).await;
        let steps: Vec<f64> = (1..=100).map(f64::from).collect();
        let arguments = json!({"values": steps, "pause_ms": 1});
        let id = pipe.send("tools/call", call("work", arguments, json!("t"))).await;
        let mut told = Vec::new();
        let mut times = Vec::new();
        loop {
            let message = pipe.read().await;
            if message["id"] == id {
                break;
            }
            times.push(Instant::now());
            told.push(message["params"].clone());
        }
        let values = values(&told);
        assert!(values.is_sorted_by(|a, b| a < b), "{version}: {values:?}");
        assert_eq!(values[0], 1.0, "{version}: the first is sent immediately");
        assert_eq!(values.last(), Some(&100.0), "{version}: the last is sent before the response");
        // A hundred steps of one millisecond leave time for five intervals. The last value is sent
        // without delay.
        assert_eq!(values.len(), 6, "{version}: {values:?}");
        let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses[..4].iter().all(|pause| *pause >= INTERVAL), "{version}: {pauses:?}");
    }
}

// PROG-05
#[tokio::test(start_paused = true)]
async fn progress_interval_is_configurable() {
    let server =
        builder().limits(|limits| limits.progress_interval = Duration::ZERO).build().unwrap();
    let mut pipe = Pipe::open(&server);
    let steps: Vec<f64> = (1..=10).map(f64::from).collect();
    let told =
        told(&mut pipe, call("work", json!({"values": steps, "pause_ms": 1}), json!(1))).await;
    assert_eq!(values(&told), steps);
}

// PROG-04
#[tokio::test(start_paused = true)]
async fn last_progress_is_sent_before_response_and_none_after() {
    let late = async |cx: Cx, gate: State<Gate>| {
        cx.progress(1.0, 2.0, "");
        cx.progress(2.0, 2.0, "");
        tokio::spawn(async move {
            gate.pass().await;
            cx.progress(3.0, 2.0, "");
        });
        "done"
    };
    for version in REVISIONS {
        let gate = Gate::default();
        let server = Server::builder("test", "1")
            .tool(Tool::new("late", late))
            .state(gate.clone())
            .build()
            .unwrap();
        let mut pipe = Pipe::speaking(&server, version).await;
        let told = told(&mut pipe, call("late", json!({}), json!("t"))).await;
        assert_eq!(values(&told), [2.0], "{version}: the newer of two values");
        gate.arrived().await;
        gate.open(1);
        pipe.quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn progress_from_spawned_task_is_sent() {
    let delegate = async |cx: Cx| {
        let work = tokio::spawn(async move {
            cx.progress(1.0, None, "");
            sleep(INTERVAL * 2).await;
            cx.progress(2.0, None, "");
            sleep(INTERVAL * 2).await;
        });
        work.await.unwrap();
        "done"
    };
    let mut pipe = Pipe::open(
        &Server::builder("test", "1").tool(Tool::new("delegate", delegate)).build().unwrap(),
    );
    let told = told(&mut pipe, call("delegate", json!({}), json!("t"))).await;
    assert_eq!(values(&told), [1.0, 2.0]);
}

// PROG-04, VER-15
#[tokio::test(start_paused = true)]
async fn concurrent_calls_have_separate_progress() {
    let mut pipe = Pipe::open(&builder().build().unwrap());
    let steps = |values: [f64; 2]| json!({"values": values, "pause_ms": 30});
    let first = pipe.send("tools/call", call("work", steps([1.0, 2.0]), json!("a"))).await;
    let second = pipe.send("tools/call", call("work", steps([10.0, 20.0]), json!(1))).await;
    let mut told = Vec::new();
    for _ in 0..6 {
        told.push(pipe.read().await);
    }
    let of = |token: Value| {
        let mine = told.iter().filter(|message| message["params"]["progressToken"] == token);
        mine.map(|message| message["params"]["progress"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of(json!("a")), [1.0, 2.0]);
    assert_eq!(of(json!(1)), [10.0, 20.0]);
    let answered: Vec<_> = told.iter().filter_map(|message| message["id"].as_u64()).collect();
    assert_eq!(answered, [first, second]);
}
