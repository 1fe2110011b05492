//! Memory of an idle upstream connection, of its supervisor, and of a bridged call.

use std::{net::TcpStream, thread, time::Duration};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::{
    load::http::{connect, exchange},
    machine::{Cores, private_bytes, resident_bytes},
    messages::{FIRST_ID, INITIALIZE, INITIALIZED, http_request, legacy_call},
    program::{Gateway, upstream_command, write_private},
    report::{Bar, Report},
    suite::Plan,
};

/// Limits in KiB.
const MAX_CONNECTION: f64 = 24.0;
const MAX_SUPERVISOR: f64 = 1.2 * 1024.0;
const MAX_BRIDGED: f64 = 16.0;

/// Connections that are opened before the measurement, to warm up the allocator.
const WARM_UP: usize = 5;

/// Callers with bridged calls, and calls of each: the limit of one caller.
const CALLERS: usize = 8;
const CALLS_EACH: usize = 16;

pub(in crate::suite) fn measure(plan: &Plan, cores: Cores, report: &mut Report) -> Result<()> {
    // Each is a process of several MiB, so there are fewer than sessions.
    let connections = (plan.held / 50).clamp(20, 100);
    report.title(&format!("Memory of the gateway, {connections} upstream connections"));
    eprintln!("measuring memory: upstream connections");
    let (gateway, supervisor) = connections_of(connections, cores)?;
    eprintln!("measuring memory: bridged calls");
    let bridged = bridged_calls(cores)?;
    let mut row = |name: &str, kib: Option<f64>, max| {
        if let Some(kib) = kib {
            report.figure(name, kib, " KiB each");
        }
        report.bar(Bar::at_most(name, kib, max, " KiB"));
    };
    row("idle upstream connection, in the gateway", Some(gateway), MAX_CONNECTION);
    row("supervisor of an idle upstream connection, private", supervisor, MAX_SUPERVISOR);
    row("bridged call", Some(bridged), MAX_BRIDGED);
    Ok(())
}

/// Opens upstream connections to servers on stdio, one per session. Returns the growth of the
/// gateway and the private memory of a supervisor, in KiB.
fn connections_of(count: usize, cores: Cores) -> Result<(f64, Option<f64>)> {
    let command = upstream_command(&["outlive-stdio"])?;
    let gateway = Gateway::start(
        &format!(
            "[gateway]\nmax_processes = 200\n\
             [upstreams.bench]\nprefix = \"\"\nisolation = \"session\"\nmax_processes = 200\n\
             command = {command}\n"
        ),
        cores,
    )?;
    for _ in 0..WARM_UP {
        session_with_call(&gateway)?;
    }
    settle();
    let before = resident_bytes(gateway.server.pid())?;
    for _ in 0..count {
        session_with_call(&gateway)?;
    }
    settle();
    let grown = resident_bytes(gateway.server.pid())?.saturating_sub(before);
    let supervisors = gateway.supervisors()?;
    let private =
        supervisors.iter().map(|pid| private_bytes(*pid)).collect::<Result<Vec<u64>>>()?;
    let each = (!private.is_empty()).then(|| kib(private.iter().sum(), private.len()));
    Ok((kib(grown, count), each))
}

/// Opens a session and makes one call in it.
fn session_with_call(gateway: &Gateway) -> Result<()> {
    let mut stream = connect(gateway.address)?;
    let answer = exchange(&mut stream, &http_request("POST", "/mcp", &[], INITIALIZE))?;
    let session = answer.header("mcp-session-id").context("the gateway opened no session")?;
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session.as_str())];
    exchange(&mut stream, &http_request("POST", "/mcp", &headers, INITIALIZED))?;
    let answer = exchange(&mut stream, &http_request("POST", "/mcp", &headers, &legacy_call()))?;
    ensure!(answer.status == 200, "a call got {}: {}", answer.status, answer.text());
    Ok(())
}

/// Opens bridged calls: each waits for an input response of its client. Returns the growth of the
/// gateway per call, in KiB.
fn bridged_calls(cores: Cores) -> Result<f64> {
    let tokens = std::env::temp_dir().join(format!("outlive-bench-tokens-{}", std::process::id()));
    let lines: Vec<String> =
        (0..CALLERS).map(|caller| format!("caller-{caller} {}\n", token(caller))).collect();
    write_private(&tokens, &lines.concat())?;
    let command = upstream_command(&["outlive-asking-stdio"])?;
    let file = tokens.display();
    let started = Gateway::start(
        &format!(
            "token_file = \"{file}\"\n\
             [upstreams.bench]\nprefix = \"\"\nprotocol_version = \"2025-06-18\"\n\
             command = {command}\n"
        ),
        cores,
    );
    let _ = std::fs::remove_file(&tokens);
    let gateway = started?;
    // The first call of each caller opens its upstream connection.
    for caller in 0..CALLERS {
        ask(&mut connect(gateway.address)?, caller, 0)?;
    }
    settle();
    let before = resident_bytes(gateway.server.pid())?;
    for caller in 0..CALLERS {
        let mut stream = connect(gateway.address)?;
        for call in 1..CALLS_EACH {
            ask(&mut stream, caller, call)?;
        }
    }
    settle();
    let grown = resident_bytes(gateway.server.pid())?.saturating_sub(before);
    Ok(kib(grown, CALLERS * (CALLS_EACH - 1)))
}

fn token(caller: usize) -> String {
    format!("caller-{caller}-0123456789abcdef")
}

/// Makes a call that needs an input response, which the client does not send.
fn ask(stream: &mut TcpStream, caller: usize, call: usize) -> Result<()> {
    let message = json!({
        "jsonrpc": "2.0", "id": FIRST_ID, "method": "tools/call",
        "params": {
            "name": "ask", "arguments": {"message": format!("{caller} {call}")},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
            },
        },
    });
    let authorization = format!("Bearer {}", token(caller));
    let headers = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "ask"),
        ("authorization", authorization.as_str()),
    ];
    let answer = exchange(stream, &http_request("POST", "/mcp", &headers, &message.to_string()))?;
    let text = answer.text();
    ensure!(text.contains("input_required"), "a bridged call got {}: {text}", answer.status);
    Ok(())
}

/// Lets the gateway finish deferred work.
fn settle() {
    thread::sleep(Duration::from_millis(500));
}

fn kib(bytes: u64, count: usize) -> f64 {
    bytes as f64 / 1024.0 / count as f64
}
