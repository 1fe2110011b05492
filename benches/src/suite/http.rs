//! `tools/call` over HTTP: 32 kept connections, processor time for each call.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};

use super::Plan;
use crate::{
    child::Server,
    load::http::{Load, connect, exchange},
    machine::Cores,
    messages::{
        FULL_CALL_HEADERS, INITIALIZE, INITIALIZED, MODERN_CALL_HEADERS, http_request, legacy_call,
        modern_call,
    },
    report::{Bar, Report},
    slices::{self, Series, Slice, Target},
};

const CONNECTIONS: usize = 32;

/// Where the servers stand in the list of targets.
const CONTROL: usize = 0;
const OUTLIVE: usize = 1;
const CONTROL_LEGACY: usize = 2;
const OUTLIVE_LEGACY: usize = 3;
const OUTLIVE_DURABLE: usize = 4;
const CONTROL_FULL: usize = 5;
const OUTLIVE_FULL: usize = 6;
const PEER: usize = 7;

pub(super) fn measure(plan: &Plan, cores: Cores, report: &mut Report) -> Result<()> {
    let peer = plan.peers.then(|| Server::peer(cores)).transpose()?;
    let (control, control_address) = Server::listening("control-http", cores)?;
    let (outlive, outlive_address) = Server::listening("outlive-http", cores)?;
    let (durable, durable_address) = Server::listening("outlive-durable-http", cores)?;
    let (full, full_address) = Server::listening("outlive-full-http", cores)?;
    let modern = modern_call();
    let modern_at =
        |path| vec![http_request("POST", path, MODERN_CALL_HEADERS, &modern); CONNECTIONS];
    let full_calls = vec![http_request("POST", "/mcp", FULL_CALL_HEADERS, &modern); CONNECTIONS];
    // With the headers that calls in a session have, though there is none.
    let legacy_control = vec![legacy_request("/legacy", &"0".repeat(32)); CONNECTIONS];
    let mut targets = vec![
        Http::open("control", &control, control_address, modern_at("/mcp"))?,
        Http::open("Outlive", &outlive, outlive_address, modern_at("/mcp"))?,
        Http::open("control, legacy", &control, control_address, legacy_control)?,
        Http::open(
            "Outlive, legacy session",
            &outlive,
            outlive_address,
            in_sessions(outlive_address)?,
        )?,
        Http::open("Outlive, Durable", &durable, durable_address, modern_at("/mcp"))?,
        Http::open("control, more headers", &control, control_address, full_calls.clone())?,
        Http::open("Outlive, token, 10,000 tools", &full, full_address, full_calls)?,
    ];
    let pairs = [
        [CONTROL, OUTLIVE],
        [CONTROL, OUTLIVE_DURABLE],
        [CONTROL_LEGACY, OUTLIVE_LEGACY],
        [CONTROL_FULL, OUTLIVE_FULL],
    ];
    for pair in pairs {
        let [control, outlive] =
            pair.map(|index| String::from_utf8_lossy(targets[index].load.answer()));
        ensure!(control == outlive, "the control answers other bytes:\n{control}\n{outlive}");
    }
    if let Some((server, address)) = &peer {
        targets.push(Http::open("rmcp 3.8.0", server, *address, modern_at("/mcp"))?);
    }
    let mut targets: Vec<Box<dyn Target>> =
        targets.into_iter().map(|target| Box::new(target) as _).collect();
    eprintln!("measuring calls over HTTP");
    let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
    tell(&series, report);
    Ok(())
}

fn tell(series: &[Series], report: &mut Report) {
    let cpu = |slice: &Slice| slice.cpu;
    report.title("tools/call over HTTP, 32 kept connections");
    let mut ratio = |name: &str, ours: usize, to: usize| {
        let (Some(ours), Some(to)) = (series.get(ours), series.get(to)) else { return None };
        let ratio = ours.ratio(to, cpu);
        report.ratio(name, ratio);
        Some(ratio.spread.median)
    };
    let modern = ratio("2026-07-28, Outlive / control (CPU)", OUTLIVE, CONTROL);
    let durable =
        ratio("2026-07-28, Outlive with Durable / control (CPU)", OUTLIVE_DURABLE, CONTROL);
    let full = ratio(
        "2026-07-28, token, 10,000 tools, Outlive / control (CPU)",
        OUTLIVE_FULL,
        CONTROL_FULL,
    );
    ratio("2026-07-28, rmcp / control (CPU)", PEER, CONTROL);
    let peer = ratio("2026-07-28, rmcp / Outlive, token, 10,000 tools (CPU)", PEER, OUTLIVE_FULL);
    let legacy =
        ratio("2025-11-25 session, Outlive / control (CPU)", OUTLIVE_LEGACY, CONTROL_LEGACY);
    report.series(series);
    report.bar(Bar::at_most("2026-07-28 call, CPU of the control", modern, 1.1, "x"));
    let name = "the same with a token and 10,000 tools, CPU of the control";
    report.bar(Bar::at_most(name, full, 1.1, "x"));
    if peer.is_some() {
        report.bar(Bar::at_least("rmcp, CPU of that", peer, 3.4, "x"));
    }
    report.bar(Bar::at_most("the same with Durable, CPU of the control", durable, 1.2, "x"));
    report.bar(Bar::at_most("2025-11-25 call in a session, CPU of the control", legacy, 1.6, "x"));
}

/// Calls of 2025-11-25, each in a session of its own.
fn in_sessions(address: SocketAddr) -> Result<Vec<Vec<u8>>> {
    (0..CONNECTIONS).map(|_| Ok(legacy_request("/mcp", &open_session(address)?))).collect()
}

fn legacy_request(path: &str, session: &str) -> Vec<u8> {
    http_request("POST", path, &session_headers(session), &legacy_call())
}

/// The headers of everything within a session.
pub(super) fn session_headers(session: &str) -> [(&str, &str); 2] {
    [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session)]
}

/// Opens a session as a client does, and returns its id.
pub(super) fn open_session(address: SocketAddr) -> Result<String> {
    let mut stream = connect(address)?;
    let answer = exchange(&mut stream, &http_request("POST", "/mcp", &[], INITIALIZE))?;
    let session =
        answer.header("mcp-session-id").context("the handshake's answer names no session")?;
    let headers = session_headers(&session);
    let noted = exchange(&mut stream, &http_request("POST", "/mcp", &headers, INITIALIZED))?;
    ensure!(noted.status == 202, "`initialized` was answered with {}", noted.status);
    Ok(session)
}

struct Http {
    name: &'static str,
    pid: u32,
    load: Load,
}

impl Http {
    fn open(
        name: &'static str,
        server: &Server,
        address: SocketAddr,
        requests: Vec<Vec<u8>>,
    ) -> Result<Self> {
        let load =
            Load::open(address, requests).with_context(|| format!("the first calls to {name}"))?;
        Ok(Self { name, pid: server.pid(), load })
    }
}

impl Target for Http {
    fn name(&self) -> &str {
        self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        self.load.run(time)
    }
}
