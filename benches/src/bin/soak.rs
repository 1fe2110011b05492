//! Dense traffic for some minutes: many clients call, stream, disconnect and resume on one server
//! in this process. Every response is checked, and at the end nothing may be left over.
//!
//! `cargo xtask soak [--minutes N] [--clients N]`, or `--short` as part of the tests. `cargo xtask
//! bench soak` applies a fixed rate on thousands of connections to a server process.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use outlive::server::{
    Args, Cx, Server, Tool,
    http::{HttpConfig, HttpServer},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};

/// Allowed memory growth after the first third, when every kind of traffic has occurred.
const GROWTH: u64 = 48 << 20;

#[tokio::main]
async fn main() -> Result<()> {
    let (length, clients) = arguments()?;
    let serving = serve().await?;
    let address = serving.address().to_string();
    let end = Instant::now() + length;
    let counts = Arc::new(Counts::default());
    let mut running = JoinSet::new();
    for client in 0..clients {
        running.spawn(traffic(client as u64, address.clone(), end, Arc::clone(&counts)));
    }
    sleep(length / 3).await;
    let early = resident()?;
    while let Some(client) = running.join_next().await {
        client??;
    }
    let late = resident()?;
    eprintln!(
        "{} calls, {} streams, {} abandoned, {} sessions, {} resumed in {length:?}",
        counts.calls.load(Ordering::Relaxed),
        counts.streams.load(Ordering::Relaxed),
        counts.abandoned.load(Ordering::Relaxed),
        counts.sessions.load(Ordering::Relaxed),
        counts.resumed.load(Ordering::Relaxed),
    );
    eprintln!("resident memory: {} KiB after a third, {} KiB at the end", early >> 10, late >> 10);
    ensure!(late < early + GROWTH, "memory grew by {} KiB", (late - early) >> 10);
    ensure!(
        serving.service().session_count() == 0,
        "{} sessions were left over",
        serving.service().session_count()
    );
    timeout(Duration::from_secs(20), serving.shutdown())
        .await
        .context("the server did not shut down")?;
    eprintln!("1 passed, 0 failed");
    Ok(())
}

#[derive(Default)]
struct Counts {
    calls: AtomicU64,
    streams: AtomicU64,
    abandoned: AtomicU64,
    sessions: AtomicU64,
    resumed: AtomicU64,
}

fn arguments() -> Result<(Duration, usize)> {
    let (mut length, mut clients) = (Duration::from_secs(300), 200);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            arguments.next().context("a number is missing")?.parse::<u64>().context("not a number")
        };
        match argument.as_str() {
            "--short" => (length, clients) = (Duration::from_secs(8), 40),
            "--minutes" => length = Duration::from_secs(60 * number()?),
            "--clients" => clients = number()? as usize,
            other => {
                bail!("unknown argument `{other}`; use --short, --minutes N or --clients N")
            }
        }
    }
    Ok((length, clients))
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Steps {
    steps: u32,
}

async fn count(cx: Cx, Args(Steps { steps }): Args<Steps>) -> String {
    for step in 1..=steps {
        cx.progress(f64::from(step), f64::from(steps), "");
        sleep(Duration::from_millis(25)).await;
    }
    format!("counted to {steps}")
}

async fn detach(cx: Cx) -> &'static str {
    cx.close_stream(Duration::from_millis(10));
    sleep(Duration::from_millis(20)).await;
    "came back"
}

async fn serve() -> Result<HttpServer> {
    let server = Server::builder("soak", "1.0.0")
        .tool(Tool::new("count", count))
        .tool(Tool::new("detach", detach))
        .tool(Tool::new("quick", || async { "done" }))
        .build()?;
    // All clients share one address.
    let config =
        HttpConfig::new().max_sessions_per_caller(10_000).max_connections_per_address(10_000);
    Ok(server.serve_http("127.0.0.1:0", config).await?)
}

/// One client: repeats all kinds of traffic until the end.
async fn traffic(client: u64, address: String, end: Instant, counts: Arc<Counts>) -> Result<()> {
    let mut turn = client;
    while Instant::now() < end {
        turn += 1;
        let one = async {
            match turn % 4 {
                0 => quick(&address, &counts).await,
                1 => streamed(&address, &counts).await,
                2 => abandoned(&address, &counts).await,
                _ => session(&address, &counts).await,
            }
        };
        timeout(Duration::from_secs(30), one).await.context("a response is missing")??;
    }
    Ok(())
}

async fn quick(address: &str, counts: &Counts) -> Result<()> {
    let body = exchange(address, &modern("quick", &json!({}))).await?;
    expect(&body, "done")?;
    counts.calls.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

async fn streamed(address: &str, counts: &Counts) -> Result<()> {
    let body = exchange(address, &modern("count", &json!({"steps": 3}))).await?;
    ensure!(body.matches("notifications/progress").count() >= 2, "progress is missing: {body}");
    expect(&body, "counted to 3")?;
    counts.streams.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Disconnects in the middle of a call.
async fn abandoned(address: &str, counts: &Counts) -> Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&modern("count", &json!({"steps": 1000}))).await?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(line) = lines.next_line().await? {
        if line.contains("notifications/progress") {
            break;
        }
    }
    counts.abandoned.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// A legacy session: a call, a call whose stream is cut and resumed, and the end.
async fn session(address: &str, counts: &Counts) -> Result<()> {
    let client = json!({"name": "soak", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let answer = exchange(address, &post("", &message("initialize", &hello))).await?;
    let id = answer
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .with_context(|| format!("the response has no session: {answer}"))?
        .to_owned();
    let header = format!("Mcp-Session-Id: {id}\r\n");
    let call = |name: &str| post(&header, &message("tools/call", &json!({"name": name})));
    expect(&exchange(address, &call("quick")).await?, "done")?;

    let cut = exchange(address, &call("detach")).await?;
    let last = cut
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .next_back()
        .context("no event ID")?;
    ensure!(!cut.contains("came back"), "the stream was not cut: {cut}");
    let resume = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nConnection: close\r\n{header}Last-Event-ID: {last}\r\n\r\n"
    );
    expect(&exchange(address, resume.as_bytes()).await?, "came back")?;
    counts.resumed.fetch_add(1, Ordering::Relaxed);

    let end =
        format!("DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n");
    let ended = exchange(address, end.as_bytes()).await?;
    ensure!(ended.starts_with("HTTP/1.1 204"), "the session did not end: {ended}");
    counts.sessions.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn message(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

fn modern(tool: &str, arguments: &Value) -> Vec<u8> {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {
        "progressToken": 1,
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let headers = format!(
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n"
    );
    post(&headers, &message("tools/call", &params))
}

fn post(headers: &str, message: &Value) -> Vec<u8> {
    let body = message.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n\
         Content-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends a request and reads the whole response.
async fn exchange(address: &str, request: &[u8]) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

fn expect(answer: &str, text: &str) -> Result<()> {
    ensure!(
        answer.starts_with("HTTP/1.1 200") && answer.contains(text),
        "expected `{text}` in {answer}"
    );
    Ok(())
}

/// Resident memory of this process in bytes.
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("the soak test needs /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}
