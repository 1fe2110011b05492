//! Monitoring of a server: the log, the metrics and the pages.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

use super::{Place, builder, until};
use crate::call::stage::Outlive;

const TOOLS: &str = r#"
[tools.fine]
description = "Works."
command = ["true"]

[tools.seven]
description = "Fails."
command = ["sh", "-c", "exit 7"]

[tools.later]
description = "Fails as a task."
command = ["sh", "-c", "exit 7"]
task = "always"
"#;

/// Sends a GET request. Returns the status and the body.
fn get(address: &str, path: &str, header: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{header}\r\n")
        .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}

fn address(place: &Place) -> String {
    place.url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
}

/// Returns the lines of the log about calls.
fn calls(place: &Place) -> Vec<Value> {
    let log = place.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["target"] == "outlive::call").collect()
}

async fn call_all(place: &Place) {
    let client = place.client_with(builder()).await;
    client.call_tool("fine", json!({})).await.unwrap();
    assert_eq!(client.call_tool("seven", json!({})).await.unwrap().is_error, Some(true));
    let mut later = client.start_tool("later", json!({})).await.unwrap();
    assert_eq!(later.wait().await.unwrap().is_error, Some(true));
}

#[tokio::test]
async fn json_log_has_one_line_per_call() {
    let mut place = Place::unserved(TOOLS).with_env("OUTLIVE_LOG_FORMAT", "json");
    place.start();
    call_all(&place).await;
    let lines =
        until("all calls are logged", || Some(calls(&place)).filter(|lines| lines.len() >= 4))
            .await;
    let said = |tool: &str, message: &str| {
        let is_it = |line: &&Value| line["tool"] == tool && line["message"] == message;
        let found: Vec<&Value> = lines.iter().filter(is_it).collect();
        let [line] = found.as_slice() else { panic!("{tool}, {message}: {lines:?}") };
        assert!(line["duration_ms"].is_u64() && line["principal"].is_string(), "{line}");
        (*line).clone()
    };
    let fine = said("fine", "call ended");
    assert_eq!((&fine["outcome"], &fine["exit_code"]), (&json!("completed"), &json!(0)));
    let seven = said("seven", "call ended");
    assert_eq!((&seven["outcome"], &seven["exit_code"]), (&json!("failed"), &json!(7)));
    let began = said("later", "call ended");
    assert_eq!(began["outcome"], "task");
    let ended = said("later", "task ended");
    assert_eq!((&ended["outcome"], &ended["exit_code"]), (&json!("failed"), &json!(7)));
    assert!(ended["task_id"].is_string(), "{ended}");
    assert_eq!(ended["task_id"], began["task_id"], "both name the same task");
}

#[tokio::test]
async fn default_log_has_one_text_line_per_call() {
    let mut place = Place::new(TOOLS);
    call_all(&place).await;
    place.stop();
    let log = place.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains(" INFO ")).collect();
    assert_eq!(lines.len(), 4, "{log}");
    let logged = |words: &[&str]| lines.iter().any(|line| words.iter().all(|it| line.contains(it)));
    assert!(
        logged(&["call ended", "tool=\"fine\"", "outcome=\"completed\"", "exit_code=0"]),
        "{log}"
    );
    assert!(
        logged(&["call ended", "tool=\"seven\"", "outcome=\"failed\"", "exit_code=7"]),
        "{log}"
    );
    assert!(logged(&["call ended", "tool=\"later\"", "outcome=\"task\"", "task_id="]), "{log}");
    assert!(logged(&["task ended", "principal=", "duration_ms=", "exit_code=7"]), "{log}");
}

#[tokio::test]
async fn log_level_warn_logs_no_calls() {
    let mut place = Place::unserved(TOOLS).with_env("OUTLIVE_LOG", "warn");
    place.start();
    call_all(&place).await;
    place.stop();
    assert!(!place.log().contains("call ended"), "{}", place.log());
}

#[cfg(unix)]
#[tokio::test]
async fn server_with_unread_stderr_still_handles_calls() {
    // Lines of more than 100 bytes each exceed the capacity of a pipe many times.
    const CALLS: usize = 6_000;
    let mut place = Place::unserved(TOOLS).with_env("OUTLIVE_LOG", "info");
    let (reader, writer) = std::io::pipe().unwrap();
    place.start_logging_to(writer);
    let client = place.client_with(builder()).await;
    for _ in 0..CALLS {
        let unknown = client.call_tool("unknown", json!({})).await;
        assert!(unknown.is_err(), "{unknown:?}");
    }
    client.call_tool("fine", json!({})).await.unwrap();
    drop(reader);
}

#[tokio::test]
async fn flood_of_calls_is_logged_in_part_with_count_of_rest() {
    const CALLS: usize = 1_000;
    let mut place = Place::new(TOOLS);
    let client = place.client_with(builder()).await;
    let start = std::time::Instant::now();
    for _ in 0..CALLS {
        assert!(client.call_tool("unknown", json!({})).await.is_err());
    }
    let seconds = usize::try_from(start.elapsed().as_secs()).unwrap() + 2;
    client.call_tool("fine", json!({})).await.unwrap();
    place.stop();
    let log = place.log();
    let logged = log.matches("unknown tool").count();
    assert!(logged >= CALLS.min(100) && logged <= 100 * seconds, "{logged} in {seconds} s");
    if logged < CALLS {
        assert!(log.contains("dropped log lines about calls"), "{logged} of {CALLS}: {log}");
    }
}

#[test]
fn stdio_server_by_default_logs_no_calls() {
    let (outlive, place) = (Outlive::new(), Place::unserved(TOOLS));
    let file = place.folder.join("outlive.toml");
    let server = format!(
        "sh -c 'exec \"{}\" serve --stdio \"{}\" 2>\"{}\"'",
        env!("CARGO_BIN_EXE_outlive"),
        file.display(),
        place.folder.join("log").display(),
    );
    let ran = outlive.run(&["call", &server, "seven"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(!place.log().contains("call ended"), "{}", place.log());
}

#[tokio::test]
async fn metrics_count_calls_by_tool_and_outcome() {
    let place = Place::new(TOOLS);
    call_all(&place).await;
    let (status, numbers) = get(&address(&place), "/metrics", "");
    assert_eq!(status, 200);
    for line in [
        "outlive_tool_calls_total{tool=\"fine\",outcome=\"completed\"} 1",
        "outlive_tool_calls_total{tool=\"seven\",outcome=\"failed\"} 1",
        "outlive_tool_calls_total{tool=\"seven\",outcome=\"completed\"} 0",
        "outlive_tool_calls_total{tool=\"later\",outcome=\"task\"} 1",
        "outlive_tool_tasks_ended_total{tool=\"later\",outcome=\"failed\"} 1",
        "outlive_tool_call_seconds_count{tool=\"seven\"} 1",
    ] {
        assert!(numbers.lines().any(|there| there == line), "{line} in\n{numbers}");
    }
}

#[tokio::test]
async fn metrics_are_cached_and_readiness_is_reported() {
    let place = Place::new(TOOLS);
    let address = address(&place);
    let (_, before) = get(&address, "/metrics", "");
    call_all(&place).await;
    let (_, after) = get(&address, "/metrics", "");
    assert_eq!(before, after, "the metrics are cached");
    assert_eq!(get(&address, "/readyz", ""), (200, "ready\n".to_owned()));
}

#[test]
fn metrics_of_public_server_require_listener_or_token() {
    let server =
        |keys: &str| format!("[server]\nallow_hosts = [\"mcp.example.com\"]\n{keys}\n{TOOLS}");
    let place = Place::new(&server(""));
    assert_ne!(get(&address(&place), "/metrics", "").0, 200);
    assert_eq!(get(&address(&place), "/readyz", "").0, 200);

    let mut place = Place::unserved(&server("metrics_token_file = \"scraper\""));
    fs::write(place.folder.join("scraper"), "0123456789abcdef0123\n").unwrap();
    place.start();
    let with = |token: &str| {
        get(&address(&place), "/metrics", &format!("authorization: Bearer {token}\r\n"))
    };
    assert_eq!(get(&address(&place), "/metrics", "").0, 401);
    assert_eq!(with("0123456789abcdef012").0, 401);
    let (status, numbers) = with("0123456789abcdef0123");
    assert!(status == 200 && numbers.contains("outlive_tasks"), "{numbers}");
}

#[test]
fn metrics_listener_serves_only_metrics() {
    // A port that was just free.
    let free =
        std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let place = Place::new(&format!("[server]\nmetrics_listen = \"{free}\"\n{TOOLS}"));
    let (status, numbers) = get(&free, "/metrics", "");
    assert!(status == 200 && numbers.contains("outlive_tool_calls_total"), "{numbers}");
    assert_eq!(get(&free, "/mcp", "").0, 404);
    assert_ne!(
        get(&address(&place), "/metrics", "").0,
        200,
        "the main listener does not serve them"
    );
}
