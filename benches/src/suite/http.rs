//! `tools/call` over HTTP: 32 kept connections, processor time for each call.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result, ensure};

use super::Plan;
use crate::{
    child::Server,
    load::http::{Load, connect, exchange},
    machine::Cores,
    messages::{
        INITIALIZE, INITIALIZED, MODERN_CALL_HEADERS, http_request, legacy_call, modern_call,
    },
    peers::{Peer, Peers, Serves, Serving},
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
/// Behind these: the peers, each beside the control of its revision.
const OURS: usize = 5;

pub(super) fn measure(plan: &Plan, peers: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let calls = |_: &Peer| Some(vec!["calls".to_owned(), "1".to_owned()]);
    let modern_peers = peers.start(Serves::Calls, "2026-07-28", calls, cores);
    let legacy_peers = peers.start(Serves::Calls, "2025-11-25", calls, cores);
    let (control, control_address) = Server::listening("control-http", cores)?;
    let (outlive, outlive_address) = Server::listening("outlive-http", cores)?;
    let (durable, durable_address) = Server::listening("outlive-durable-http", cores)?;
    let modern = modern_call();
    let modern_at =
        |path| vec![http_request("POST", path, MODERN_CALL_HEADERS, &modern); CONNECTIONS];
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
    ];
    let pairs = [[CONTROL, OUTLIVE], [CONTROL, OUTLIVE_DURABLE], [CONTROL_LEGACY, OUTLIVE_LEGACY]];
    for pair in pairs {
        let [control, outlive] =
            pair.map(|index| String::from_utf8_lossy(targets[index].load.answer()));
        ensure!(control == outlive, "the control answers other bytes:\n{control}\n{outlive}");
    }
    let mut controls = Vec::new();
    for Serving { peer, server, address, name } in &modern_peers {
        let opened = Http::open(name.as_str(), server, *address, modern_at(&peer.path));
        let Some(target) = peers.keep(name, opened) else { continue };
        targets.push(target.of(peer));
        controls.push(CONTROL);
    }
    for Serving { peer, server, address, name } in &legacy_peers {
        let requests = in_sessions_at(*address, &peer.path);
        let name = format!("{name}, legacy session");
        let opened =
            requests.and_then(|requests| Http::open(name.as_str(), server, *address, requests));
        let Some(target) = peers.keep(&name, opened) else { continue };
        targets.push(target.of(peer));
        controls.push(CONTROL_LEGACY);
    }
    let mut targets: Vec<Box<dyn Target>> =
        targets.into_iter().map(|target| Box::new(target) as _).collect();
    eprintln!("measuring calls over HTTP");
    let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
    tell(&series, &controls, report);
    Ok(())
}

fn tell(series: &[Series], controls: &[usize], report: &mut Report) {
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
    let legacy =
        ratio("2025-11-25 session, Outlive / control (CPU)", OUTLIVE_LEGACY, CONTROL_LEGACY);
    for (peer, control) in (OURS..).zip(controls) {
        let Some(theirs) = series.get(peer) else { continue };
        let (wire, outlive) = match *control {
            CONTROL => ("2026-07-28", OUTLIVE),
            _ => ("2025-11-25 session", OUTLIVE_LEGACY),
        };
        ratio(&format!("{wire}, {} / control (CPU)", theirs.name), peer, *control);
        ratio(&format!("{wire}, {} / Outlive (CPU)", theirs.name), peer, outlive);
    }
    report.series(series);
    report.bar(Bar::at_most("2026-07-28 call, CPU of the control", modern, 1.2, "x"));
    report.bar(Bar::at_most("the same with Durable, CPU of the control", durable, 1.2, "x"));
    report.bar(Bar::at_most("2025-11-25 call in a session, CPU of the control", legacy, 1.6, "x"));
}

/// Calls of 2025-11-25, each in a session of its own.
fn in_sessions(address: SocketAddr) -> Result<Vec<Vec<u8>>> {
    in_sessions_at(address, "/mcp")
}

fn in_sessions_at(address: SocketAddr, path: &str) -> Result<Vec<Vec<u8>>> {
    (0..CONNECTIONS).map(|_| Ok(legacy_request(path, &open_session_at(address, path)?))).collect()
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
    open_session_at(address, "/mcp")
}

fn open_session_at(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = connect(address)?;
    let answer = exchange(&mut stream, &http_request("POST", path, &[], INITIALIZE))?;
    let session =
        answer.header("mcp-session-id").context("the handshake's answer names no session")?;
    let headers = session_headers(&session);
    let noted = exchange(&mut stream, &http_request("POST", path, &headers, INITIALIZED))?;
    ensure!(noted.status == 202, "`initialized` was answered with {}", noted.status);
    Ok(session)
}

/// A server that is called over HTTP.
pub(super) struct Http {
    name: String,
    pid: u32,
    load: Load,
    has_helpers: bool,
}

impl Http {
    fn open(
        name: &str,
        server: &Server,
        address: SocketAddr,
        requests: Vec<Vec<u8>>,
    ) -> Result<Self> {
        let load =
            Load::open(address, requests).with_context(|| format!("the first calls to {name}"))?;
        Ok(Self::under(name, server, load))
    }

    pub(super) fn under(name: &str, server: &Server, load: Load) -> Self {
        Self { name: name.to_owned(), pid: server.pid(), load, has_helpers: false }
    }

    /// As a peer is, whose helpers are no strangers.
    pub(super) fn of(mut self, peer: &Peer) -> Self {
        self.has_helpers = peer.has_helpers;
        self
    }
}

impl Target for Http {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn has_helpers(&self) -> bool {
        self.has_helpers
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        self.load.run(time)
    }
}
