//! The attacks: each repeats one action as often as it can until the run ends.
//!
//! To add an attack, write a function that takes a [`Caller`] and makes one attempt, and add it to
//! [`ATTACKS`]. The run expects rejected attempts; the measurements decide, not the responses.

use std::io::{self, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::caller::{Caller, request};
use super::results::{read_result, store_result};

/// An action that threads repeat.
pub(super) struct Attack {
    pub(super) name: &'static str,
    /// Number of threads.
    threads: usize,
    run: fn(&Caller, u64) -> io::Result<()>,
}

/// Every attack of the security audit that makes memory, disk, processes or connections grow.
pub(super) const ATTACKS: &[Attack] = &[
    Attack { name: "readiness pages", threads: 2, run: read_pages },
    Attack { name: "made-up task IDs", threads: 2, run: poll_made_up_task },
    Attack { name: "task IDs of 1 MiB", threads: 1, run: poll_large_task_id },
    Attack { name: "sessions with large handshakes", threads: 1, run: open_large_session },
    Attack { name: "sessions", threads: 1, run: open_session },
    Attack { name: "tasks with large _meta", threads: 1, run: create_large_task },
    Attack { name: "results under idempotency keys", threads: 1, run: call_with_key },
    Attack { name: "abandoned input requests", threads: 1, run: abandon_input_request },
    Attack { name: "tasks that fill the engine", threads: 2, run: create_slow_task },
    Attack { name: "unread responses", threads: 2, run: leave_response_unread },
    Attack { name: "unread SSE stream", threads: 1, run: leave_stream_unread },
    Attack { name: "unsolicited responses", threads: 1, run: send_stray_reply },
    Attack { name: "idle connections", threads: 1, run: hold_idle_connections },
    Attack { name: "trickled heads and bodies", threads: 1, run: trickle },
    Attack { name: "deeply nested JSON", threads: 1, run: send_nested_json },
    Attack { name: "large cut results", threads: 1, run: store_result },
    Attack { name: "ranges of stored results", threads: 2, run: read_result },
];

/// Size of a large value in bytes.
const LARGE: usize = 1 << 20;
/// Connections that one attack holds open.
const IDLE_CONNECTIONS: usize = 1_100;
/// Time after which held connections are reopened.
const HOLD: Duration = Duration::from_secs(10);

/// Runs every attack until `end` and returns the number of attempts of each.
pub(super) fn run(caller: &Caller, end: Instant) -> Vec<(&'static str, u64)> {
    thread::scope(|scope| {
        let start = |attack: &'static Attack, number| {
            scope.spawn(move || repeat(attack, caller, number, end))
        };
        let started: Vec<_> = ATTACKS
            .iter()
            .map(|attack| {
                let threads: Vec<_> =
                    (0..attack.threads).map(|number| start(attack, number as u64)).collect();
                (attack.name, threads)
            })
            .collect();
        let attempts = |threads: Vec<thread::ScopedJoinHandle<'_, u64>>| {
            threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
        };
        started.into_iter().map(|(name, threads)| (name, attempts(threads))).collect()
    })
}

fn repeat(attack: &Attack, caller: &Caller, thread: u64, end: Instant) -> u64 {
    let mut attempts = 0;
    while Instant::now() < end {
        // A rejected caller retries immediately, but must not spin on a closed port.
        if (attack.run)(caller, thread << 32 | attempts).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        attempts += 1;
    }
    attempts
}

fn read_pages(caller: &Caller, attempt: u64) -> io::Result<()> {
    let path = if attempt.is_multiple_of(2) { "/readyz" } else { "/metrics" };
    caller.anonymous().get(path).map(drop)
}

fn poll_made_up_task(caller: &Caller, attempt: u64) -> io::Result<()> {
    let id = format!("{attempt:032x}");
    caller.modern("tasks/get", json!({"taskId": id})).map(drop)
}

fn poll_large_task_id(caller: &Caller, _: u64) -> io::Result<()> {
    let Some(session) = caller.initialize(&client_info())? else { return refused() };
    let message = request("tasks/get", json!({"taskId": "x".repeat(LARGE)}));
    for _ in 0..20 {
        caller.in_session(&session, &message)?;
    }
    Ok(())
}

fn open_large_session(caller: &Caller, _: u64) -> io::Result<()> {
    let info = json!({"name": "x".repeat(LARGE), "version": "1"});
    caller.initialize(&info)?.map_or_else(refused, |_| Ok(()))
}

fn open_session(caller: &Caller, _: u64) -> io::Result<()> {
    caller.initialize(&client_info())?.map_or_else(refused, |_| Ok(()))
}

fn create_large_task(caller: &Caller, _: u64) -> io::Result<()> {
    let Some(session) = caller.initialize(&client_info())? else { return refused() };
    let params = json!({
        "name": "echo", "arguments": {"text": "large"}, "task": {"ttl": 30_u64 * 24 * 3600 * 1000},
        "_meta": {"example.com/padding": "x".repeat(LARGE)},
    });
    for _ in 0..20 {
        caller.in_session(&session, &request("tools/call", params.clone()))?;
    }
    Ok(())
}

fn call_with_key(caller: &Caller, attempt: u64) -> io::Result<()> {
    let meta = json!({"dev.outlive/idempotencyKey": format!("key-{attempt}")});
    let params = json!({"name": "print", "arguments": {"kib": 900}});
    caller.modern_with("tools/call", params, meta).map(drop)
}

fn abandon_input_request(caller: &Caller, _: u64) -> io::Result<()> {
    caller.modern("tools/call", json!({"name": "confirm", "arguments": {}})).map(drop)
}

fn create_slow_task(caller: &Caller, _: u64) -> io::Result<()> {
    caller.modern("tools/call", json!({"name": "slow", "arguments": {}})).map(drop)
}

/// Requests a large response and closes the connection later without reading it.
fn leave_response_unread(caller: &Caller, _: u64) -> io::Result<()> {
    let body = request(
        "tools/call",
        json!({"name": "print", "arguments": {"kib": 900}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": super::caller::MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }}),
    );
    let headers = [
        ("MCP-Protocol-Version", super::caller::MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "print"),
    ];
    let mut open = Vec::new();
    for _ in 0..50 {
        let mut stream = caller.connect()?;
        stream.write_all(message(caller, "/mcp", &headers, &body).as_bytes())?;
        open.push(stream);
    }
    thread::sleep(Duration::from_secs(3));
    Ok(())
}

/// Opens the stream of 2024-11-05 and reads only its first event.
fn leave_stream_unread(caller: &Caller, _: u64) -> io::Result<()> {
    use std::io::{BufRead, BufReader};

    let stream = caller.connect()?;
    let mut writer = stream.try_clone()?;
    write!(writer, "{}Accept: text/event-stream\r\n\r\n", caller.head("GET", "/sse"))?;
    let mut reader = BufReader::new(stream);
    let endpoint = loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return refused();
        }
        if let Some(endpoint) = line.trim_end().strip_prefix("data: ") {
            break endpoint.to_owned();
        }
    };
    let hello = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client_info(),
    });
    caller_posts(caller, &endpoint, &request("initialize", hello))?;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    caller_posts(caller, &endpoint, &ready)?;
    let begun = Instant::now();
    while begun.elapsed() < HOLD {
        let call = request("tools/call", json!({"name": "print", "arguments": {"kib": 900}}));
        caller_posts(caller, &endpoint, &call)?;
    }
    Ok(())
}

fn send_stray_reply(caller: &Caller, _: u64) -> io::Result<()> {
    let Some(session) = caller.initialize(&client_info())? else { return refused() };
    let padding = "x".repeat(LARGE);
    for id in 0..100 {
        let reply = json!({"jsonrpc": "2.0", "id": id, "result": {"padding": padding}});
        caller.in_session(&session, &reply)?;
    }
    Ok(())
}

fn hold_idle_connections(caller: &Caller, _: u64) -> io::Result<()> {
    let caller = caller.anonymous();
    let open: Vec<TcpStream> = (0..IDLE_CONNECTIONS).map_while(|_| caller.connect().ok()).collect();
    thread::sleep(HOLD);
    drop(open);
    Ok(())
}

/// Sends one byte per second: half of the connections in the head, half in the body.
fn trickle(caller: &Caller, _: u64) -> io::Result<()> {
    let mut open = Vec::new();
    for number in 0..200 {
        let mut stream = caller.connect()?;
        let mut head = caller.head("POST", "/mcp");
        if number % 2 == 0 {
            head.push_str("Content-Type: application/json\r\nContent-Length: 60000\r\n\r\n");
        }
        stream.write_all(head.as_bytes())?;
        open.push(stream);
    }
    let begun = Instant::now();
    while begun.elapsed() < HOLD && !open.is_empty() {
        open.retain_mut(|stream| stream.write_all(b"x").is_ok());
        thread::sleep(Duration::from_secs(1));
    }
    Ok(())
}

fn send_nested_json(caller: &Caller, _: u64) -> io::Result<()> {
    let mut stream = caller.connect()?;
    let body = "[".repeat(LARGE);
    let head = caller.head("POST", "/mcp");
    let rest = "Content-Type: application/json\r\nConnection: close\r\n";
    write!(stream, "{head}{rest}Content-Length: {}\r\n\r\n", body.len())?;
    stream.write_all(body.as_bytes())?;
    crate::crash::http::Response::read(io::BufReader::new(stream)).map(drop)
}

/// Sends a message to the endpoint of an SSE stream; the response comes on that stream.
fn caller_posts(caller: &Caller, endpoint: &str, body: &Value) -> io::Result<()> {
    let mut stream = caller.connect()?;
    stream.write_all(message(caller, endpoint, &[("Connection", "close")], body).as_bytes())?;
    crate::crash::http::Response::read(io::BufReader::new(stream)).map(drop)
}

fn message(caller: &Caller, path: &str, headers: &[(&str, &str)], body: &Value) -> String {
    let body = body.to_string();
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    format!(
        "{}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         {headers}Content-Length: {}\r\n\r\n{body}",
        caller.head("POST", path),
        body.len()
    )
}

fn client_info() -> Value {
    json!({"name": "caller", "version": "1"})
}

fn refused() -> io::Result<()> {
    Err(io::ErrorKind::PermissionDenied.into())
}
