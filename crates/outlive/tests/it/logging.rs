//! Log messages: sent only on request, at the requested level.

use outlive::server::{Cx, Json, LoggingLevel, Server, ServerBuilder, State, Tool};
use serde_json::{Value, json};

use crate::support::{
    gate::Gate,
    pipe::{LEGACY, MODERN, Pipe, REVISIONS, with_meta},
};

const LEVEL: &str = "io.modelcontextprotocol/logLevel";
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// Logs a message of every level, lowest first.
async fn chatter(cx: Cx) -> &'static str {
    LoggingLevel::ALL.into_iter().for_each(|level| cx.log(level, level.as_str()));
    "done"
}

async fn rich(cx: Cx) -> &'static str {
    cx.log_from("db", LoggingLevel::Error, json!({"rows": [1, 2.5, null]}));
    cx.log(LoggingLevel::Error, 7);
    "done"
}

/// Spawns a task that keeps logging after the response.
async fn late(cx: Cx, gate: State<Gate>) -> &'static str {
    tokio::spawn(async move {
        cx.log(LoggingLevel::Error, "in time");
        gate.pass().await;
        cx.log(LoggingLevel::Error, "too late");
    });
    tokio::task::yield_now().await;
    "done"
}

fn builder(gate: &Gate) -> ServerBuilder {
    Server::builder("test", "1")
        .tool(Tool::new("chatter", chatter))
        .tool(Tool::new("rich", rich))
        .tool(Tool::new("late", late))
        .state(gate.clone())
}

fn server() -> Server {
    builder(&Gate::default()).logging(true).build().unwrap()
}

/// Calls a tool and returns the levels of the log messages before its response.
async fn levels(pipe: &mut Pipe, tool: &str, level: Option<&str>) -> Vec<String> {
    let mut params = json!({"name": tool});
    if let Some(level) = level {
        params = with_meta(json!({"name": tool, "_meta": {LEVEL: level}}));
    }
    let id = pipe.send("tools/call", params).await;
    let mut messages = pipe.read_to(id).await;
    assert!(messages.pop().unwrap().get("result").is_some());
    messages
        .iter()
        .map(|message| {
            assert_eq!(message["method"], "notifications/message");
            message["params"]["level"].as_str().unwrap().to_owned()
        })
        .collect()
}

// LOG-01, LOG-09, RPC-16
#[tokio::test(start_paused = true)]
async fn logging_is_off_by_default() {
    let server = builder(&Gate::default()).build().unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::open(&server);
        let hello = match version {
            MODERN => pipe.result("server/discover", json!({})).await,
            _ => pipe.legacy(version).await,
        };
        assert_eq!(hello["capabilities"].get("logging"), None, "{version}");
        assert_eq!(
            pipe.error("logging/setLevel", json!({"level": "debug"})).await["code"],
            -32601,
            "{version}"
        );
        let asked = (version == MODERN).then_some("debug");
        assert_eq!(levels(&mut pipe, "chatter", asked).await, Vec::<String>::new(), "{version}");
    }
}

// LOG-01, LOG-02, LOG-06
#[tokio::test(start_paused = true)]
async fn session_gets_log_messages_from_its_level() {
    for version in LEGACY {
        let server = server();
        let mut pipe = Pipe::open(&server);
        assert_eq!(pipe.legacy(version).await["capabilities"]["logging"], json!({}), "{version}");
        assert_eq!(
            levels(&mut pipe, "chatter", None).await,
            LEVELS[1..],
            "{version}: the default level is info"
        );
        for (at, level) in LEVELS.into_iter().enumerate() {
            assert_eq!(
                pipe.result("logging/setLevel", json!({"level": level})).await,
                json!({}),
                "{version}"
            );
            assert_eq!(
                levels(&mut pipe, "chatter", None).await,
                LEVELS[at..],
                "{version}: {level}"
            );
        }
        // Another session has its own level.
        let mut other = Pipe::speaking(&server, version).await;
        assert_eq!(levels(&mut other, "chatter", None).await, LEVELS[1..], "{version}");
        for wrong in
            [json!({"level": "loud"}), json!({"level": "INFO"}), json!({"level": 3}), json!({})]
        {
            assert_eq!(pipe.error("logging/setLevel", wrong).await["code"], -32602, "{version}");
        }
        assert_eq!(
            levels(&mut pipe, "chatter", None).await,
            LEVELS[7..],
            "{version}: the level is unchanged"
        );
    }
}

// LOG-02, LOG-03, LOG-04, META-08
#[tokio::test(start_paused = true)]
async fn modern_request_gets_log_messages_only_if_it_requests_them() {
    let mut pipe = Pipe::open(&server());
    for (at, level) in LEVELS.into_iter().enumerate() {
        assert_eq!(levels(&mut pipe, "chatter", Some(level)).await, LEVELS[at..], "{level}");
        assert_eq!(
            levels(&mut pipe, "chatter", None).await,
            Vec::<String>::new(),
            "the next request has no level"
        );
    }
}

// LOG-05
#[tokio::test(start_paused = true)]
async fn modern_request_with_unknown_log_level_is_rejected() {
    let mut pipe = Pipe::open(&server());
    for level in [json!("loud"), json!("Info"), json!(""), json!(3), json!(null), json!({})] {
        for method in ["tools/call", "tools/list", "server/discover"] {
            let refusal =
                pipe.error(method, json!({"name": "chatter", "_meta": {LEVEL: level}})).await;
            assert_eq!(refusal["code"], -32602, "{level}");
            assert!(refusal["message"].as_str().unwrap().contains(LEVEL), "{refusal}");
        }
    }
}

// LOG-08
#[tokio::test(start_paused = true)]
async fn log_message_carries_any_json_and_logger_name() {
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server(), version).await;
        let mut params = json!({"name": "rich"});
        if version == MODERN {
            params["_meta"] = json!({LEVEL: "debug"});
        }
        let id = pipe.send("tools/call", params).await;
        let messages = pipe.read_to(id).await;
        let data = json!({"rows": [1, 2.5, null]});
        assert_eq!(
            messages[0]["params"],
            json!({"level": "error", "logger": "db", "data": data}),
            "{version}"
        );
        assert_eq!(messages[1]["params"], json!({"level": "error", "data": 7}), "{version}");
        assert_eq!(messages.len(), 3, "{version}");
    }
}

// LOG-04, LOG-10
#[tokio::test(start_paused = true)]
async fn log_messages_after_response_are_dropped() {
    for version in REVISIONS {
        let gate = Gate::default();
        let mut pipe =
            Pipe::speaking(&builder(&gate).logging(true).build().unwrap(), version).await;
        let level = (version == MODERN).then_some("debug");
        assert_eq!(levels(&mut pipe, "late", level).await, ["error"], "{version}");
        gate.open(1);
        pipe.quiet().await;
    }
}

// SUB-15
#[tokio::test(start_paused = true)]
async fn subscription_carries_no_log_messages() {
    let listen = async |cx: Cx| {
        cx.log(LoggingLevel::Emergency, "must not be sent");
        let id: Value = serde_json::from_str(cx.call().id()).unwrap();
        Json(json!({"_meta": {"io.modelcontextprotocol/subscriptionId": id}}))
    };
    let server = builder(&Gate::default())
        .logging(true)
        .custom_method("subscriptions/listen", listen)
        .build()
        .unwrap();
    let mut pipe = Pipe::open(&server);
    let params = json!({"notifications": {}, "_meta": {LEVEL: "debug"}});
    let id = pipe.send("subscriptions/listen", params).await;
    let messages = pipe.read_to(id).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
}

// SEC-06
#[tokio::test(start_paused = true)]
async fn log_messages_over_queue_limit_are_dropped() {
    let flood = async |cx: Cx| {
        (0..10_000).for_each(|line| cx.log(LoggingLevel::Info, line));
        "done"
    };
    let builder = Server::builder("test", "1").logging(true).tool(Tool::new("flood", flood));
    let mut pipe =
        Pipe::open(&builder.limits(|limits| limits.max_queued_notifications = 5).build().unwrap());
    let id = pipe.send("tools/call", json!({"name": "flood", "_meta": {LEVEL: "debug"}})).await;
    let messages = pipe.read_to(id).await;
    let lines: Vec<&Value> =
        messages.iter().filter_map(|message| message["params"].get("data")).collect();
    assert_eq!(lines, [&json!(0), &json!(1), &json!(2), &json!(3), &json!(4)]);
    assert_eq!(messages.len(), 6);
}
