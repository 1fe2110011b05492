//! `tools/call` over HTTP: 32 persistent connections, processor time per call.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use outlive_plots::data::{self, CallCost, Kind};

use super::Plan;
use crate::{
    child::Server,
    load::{
        Loaded,
        http::{Load, connect, exchange},
    },
    machine::Cores,
    messages::{
        FULL_CALL_HEADERS, INITIALIZE, INITIALIZED, MODERN_CALL_HEADERS, http_request, legacy_call,
        modern_call,
    },
    peers::{Peer, Peers, Serves, Serving},
    report::{Bar, Report},
    slices::{self, Ratio, Series, Slice, Target},
};

const CONNECTIONS: usize = 32;

/// Positions of the servers in the list of targets.
const CONTROL: usize = 0;
const OUTLIVE: usize = 1;
const CONTROL_LEGACY: usize = 2;
const OUTLIVE_LEGACY: usize = 3;
const OUTLIVE_DURABLE: usize = 4;
const CONTROL_FULL: usize = 5;
const OUTLIVE_FULL: usize = 6;
/// The peers follow, each compared with the control of its version.
const PEERS: usize = 7;

pub(super) fn measure(plan: &Plan, peers: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let calls = |_: &Peer| Some(vec!["calls".to_owned(), "1".to_owned()]);
    let modern_peers = peers.start(Serves::Calls, "2026-07-28", calls, cores);
    let legacy_peers = peers.start(Serves::Calls, "2025-11-25", calls, cores);
    let (control, control_address) = Server::listening("control-http", cores)?;
    let (outlive, outlive_address) = Server::listening("outlive-http", cores)?;
    let (durable, durable_address) = Server::listening("outlive-durable-http", cores)?;
    let (full, full_address) = Server::listening("outlive-full-http", cores)?;
    let modern = modern_call();
    let request = |path, headers| http_request("POST", path, headers, &modern);
    let modern_at = |path| vec![request(path, MODERN_CALL_HEADERS); CONNECTIONS];
    let full_at = |path| vec![request(path, FULL_CALL_HEADERS); CONNECTIONS];
    // With the headers of calls in a session, though the control has no sessions.
    let legacy_control = vec![legacy_request("/legacy", &"0".repeat(32)); CONNECTIONS];
    let mut targets = vec![
        open("control", &control, control_address, modern_at("/mcp"))?,
        open("Outlive", &outlive, outlive_address, modern_at("/mcp"))?,
        open("control, legacy", &control, control_address, legacy_control)?,
        open("Outlive, legacy session", &outlive, outlive_address, in_sessions(outlive_address)?)?,
        open("Outlive, Durable", &durable, durable_address, modern_at("/mcp"))?,
        open("control, token, Origin", &control, control_address, full_at("/page"))?,
        open("Outlive, token, Origin, 10,000 tools", &full, full_address, full_at("/mcp"))?,
    ];
    let pairs = [
        [CONTROL, OUTLIVE],
        [CONTROL, OUTLIVE_DURABLE],
        [CONTROL_LEGACY, OUTLIVE_LEGACY],
        [CONTROL_FULL, OUTLIVE_FULL],
    ];
    pairs.into_iter().try_for_each(|pair| same_bytes(pair.map(|at| targets[at].load.answer())))?;
    let (mut kept, mut controls) = (Vec::new(), Vec::new());
    for Serving { peer, server, address, name } in &modern_peers {
        let opened = open(name.as_str(), server, *address, modern_at(&peer.path));
        let Some(target) = peers.keep(name, opened) else { continue };
        targets.push(target.of(peer));
        kept.push(*peer);
        controls.push(CONTROL);
    }
    for Serving { peer, server, address, name } in &legacy_peers {
        let requests = in_sessions_at(*address, &peer.path);
        let name = format!("{name}, legacy session");
        let opened = requests.and_then(|requests| open(name.as_str(), server, *address, requests));
        let Some(target) = peers.keep(&name, opened) else { continue };
        targets.push(target.of(peer));
        kept.push(*peer);
        controls.push(CONTROL_LEGACY);
    }
    let mut targets: Vec<Box<dyn Target>> =
        targets.into_iter().map(|target| Box::new(target) as _).collect();
    eprintln!("measuring calls over HTTP");
    let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
    let mut pairs = Vec::new();
    for ((at, control), peer) in (PEERS..).zip(&controls).zip(&kept) {
        let ours = if *control == CONTROL_LEGACY { OUTLIVE_LEGACY } else { OUTLIVE_FULL };
        pairs.push(match peer.is_rust() {
            true => side_by_side(&mut targets, at, ours, plan)?,
            // These peers are far slower, and they close connections that are idle for a few
            // seconds.
            false => series[at].ratio(&series[ours], cpu),
        });
    }
    tell(&series, &controls, &pairs, report);
    report.plot(data::CALLS, &call_costs(&series, &controls))
}

/// Fails if the control does not return the same bytes as our server.
fn same_bytes(answers: [&[u8]; 2]) -> Result<()> {
    let [control, outlive] = answers.map(String::from_utf8_lossy);
    ensure!(control == outlive, "the control returns other bytes:\n{control}\n{outlive}");
    Ok(())
}

/// Measures a peer and our server again in adjacent slices, because slices that are far apart meet
/// other conditions.
fn side_by_side(
    targets: &mut [Box<dyn Target>],
    peer: usize,
    ours: usize,
    plan: &Plan,
) -> Result<Ratio> {
    targets.swap(ours + 1, peer);
    let taken = slices::take(&mut targets[ours..=ours + 1], plan.rounds * 2, plan.slice / 3);
    targets.swap(ours + 1, peer);
    let taken = taken?;
    Ok(taken[1].ratio(&taken[0], cpu))
}

fn cpu(slice: &Slice) -> f64 {
    slice.cpu
}

/// The CPU time of the targets with calls of 2026-07-28.
fn call_costs(series: &[Series], controls: &[usize]) -> Vec<CallCost> {
    let modern = |at: usize| match at {
        CONTROL_LEGACY | OUTLIVE_LEGACY => None,
        CONTROL | CONTROL_FULL => Some(Kind::Control),
        ..PEERS => Some(Kind::Outlive),
        _ => (controls[at - PEERS] == CONTROL).then_some(Kind::Peer),
    };
    let cost = |(at, series): (usize, &Series)| {
        let (target, cpu_us) = (series.name.clone(), series.spread(cpu).into());
        modern(at).map(|kind| CallCost { target, kind, cpu_us })
    };
    series.iter().enumerate().filter_map(cost).collect()
}

fn tell(series: &[Series], controls: &[usize], pairs: &[Ratio], report: &mut Report) {
    report.title("Tools/call over HTTP, 32 kept connections");
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
    let legacy =
        ratio("2025-11-25 session, Outlive / control (CPU)", OUTLIVE_LEGACY, CONTROL_LEGACY);
    for (peer, control) in (PEERS..).zip(controls) {
        let Some(theirs) = series.get(peer) else { continue };
        let wire = if *control == CONTROL_LEGACY { "2025-11-25 session" } else { "2026-07-28" };
        ratio(&format!("{wire}, {} / control (CPU)", theirs.name), peer, *control);
    }
    let mut fastest: Option<(&str, f64)> = None;
    for ((theirs, control), pair) in series.iter().skip(PEERS).zip(controls).zip(pairs) {
        if *control == CONTROL_LEGACY {
            report.ratio(&format!("2025-11-25 session, {} / Outlive (CPU)", theirs.name), *pair);
            continue;
        }
        let name = format!("2026-07-28, {} / Outlive, token, 10,000 tools (CPU)", theirs.name);
        report.ratio(&name, *pair);
        let times = pair.spread.median;
        if fastest.is_none_or(|(_, least)| times < least) {
            fastest = Some((&theirs.name, times));
        }
    }
    report.series(series);
    report.bar(Bar::at_most("2026-07-28 call, CPU relative to the control", modern, 1.1, "x"));
    let name = "the same with a token and 10,000 tools, CPU relative to the control";
    report.bar(Bar::at_most(name, full, 1.1, "x"));
    if let Some((name, times)) = fastest {
        let name = format!("the fastest peer, {name}, CPU relative to the previous row");
        report.bar(Bar::at_least(&name, Some(times), 3.4, "x"));
    }
    report.bar(Bar::at_most(
        "2026-07-28 call with Durable, CPU relative to the control",
        durable,
        1.2,
        "x",
    ));
    report.bar(Bar::at_most(
        "2025-11-25 call in a session, CPU relative to the control",
        legacy,
        1.6,
        "x",
    ));
}

/// Calls of 2025-11-25, each in its own session.
fn in_sessions(address: SocketAddr) -> Result<Vec<Vec<u8>>> {
    in_sessions_at(address, "/mcp")
}

fn in_sessions_at(address: SocketAddr, path: &str) -> Result<Vec<Vec<u8>>> {
    (0..CONNECTIONS).map(|_| Ok(legacy_request(path, &open_session_at(address, path)?))).collect()
}

fn legacy_request(path: &str, session: &str) -> Vec<u8> {
    http_request("POST", path, &session_headers(session), &legacy_call())
}

/// The headers of requests in a session.
pub(super) fn session_headers(session: &str) -> [(&str, &str); 2] {
    [("mcp-protocol-version", "2025-11-25"), ("mcp-session-id", session)]
}

/// Opens a session as a client does and returns its ID.
pub(super) fn open_session(address: SocketAddr) -> Result<String> {
    open_session_at(address, "/mcp")
}

fn open_session_at(address: SocketAddr, path: &str) -> Result<String> {
    let mut stream = connect(address)?;
    let answer = exchange(&mut stream, &http_request("POST", path, &[], INITIALIZE))?;
    let session =
        answer.header("mcp-session-id").context("the handshake response has no session")?;
    let headers = session_headers(&session);
    let noted = exchange(&mut stream, &http_request("POST", path, &headers, INITIALIZED))?;
    ensure!(noted.status == 202, "the response to `initialized` is {}", noted.status);
    Ok(session)
}

fn open(
    name: &str,
    server: &Server,
    address: SocketAddr,
    requests: Vec<Vec<u8>>,
) -> Result<Loaded<Load>> {
    let load =
        Load::open(address, requests).with_context(|| format!("the first calls to {name}"))?;
    Ok(Loaded::new(name, server, load))
}
