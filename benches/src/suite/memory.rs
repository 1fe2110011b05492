//! The memory of open sessions, sessions with a stream, and subscriptions. Events flow on the
//! streams.

use std::{
    net::{SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use outlive_plots::data::{self, StreamMemory};

use super::{
    Plan, gateway,
    http::{open_session, session_headers},
};
use crate::{
    child::Server,
    load::{
        Generator,
        http::{Load, connect, open_stream},
    },
    machine::{Cores, allow_open_files, resident_bytes},
    messages::{LISTEN, LISTEN_HEADERS, MODERN_CALL_HEADERS, http_request, modern_call},
    peers::Peers,
    report::{Bar, Report},
};

/// Number of objects that are opened and closed before the measurement, to warm up the allocator.
const WARM_UP: usize = 200;

/// Number of change notifications while the streams are open.
const EVENTS: usize = 5;

/// Open files for other purposes.
const OTHER_FILES: u64 = 200;

/// An object that is held open.
struct Held {
    name: &'static str,
    open: fn(SocketAddr) -> Result<Option<TcpStream>>,
    /// Limit of its memory in KiB.
    bar: f64,
}

const ALL: &[Held] = &[
    Held { name: "idle legacy session", open: session, bar: 1.0 },
    Held { name: "legacy session with an open GET stream", open: session_with_stream, bar: 6.0 },
    Held { name: "open subscriptions/listen stream", open: listen, bar: 6.0 },
];

pub(super) fn measure(plan: &Plan, _: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let room =
        allow_open_files(plan.held as u64 + OTHER_FILES).saturating_sub(OTHER_FILES) as usize;
    let held = plan.held.min(room);
    report.title(&format!("Memory, {held} open each"));
    if held < plan.held {
        report.say(format!(
            "the limit on open files allows {held} instead of {}; `ulimit -n` raises it",
            plan.held
        ));
    }
    let mut rows = Vec::new();
    for what in ALL {
        eprintln!("measuring memory: {}", what.name);
        let kib = grown(what, held, cores).with_context(|| what.name)? / 1024.0;
        report.figure(what.name, kib, " KiB each");
        report.bar(Bar::at_most(what.name, Some(kib), what.bar, " KiB"));
        let name = what.name.to_owned();
        rows.push(StreamMemory { name, kib: data::rounded(kib), max_kib: what.bar });
    }
    report.plot(data::STREAMS, &rows)?;
    gateway::memory(plan, cores, report)
}

/// Memory growth of a new server per object, in bytes.
fn grown(what: &Held, count: usize, cores: Cores) -> Result<f64> {
    let (mut server, address) = Server::listening("outlive-telling-http", cores)?;
    let open = |count: usize| (0..count).map(|_| (what.open)(address)).collect::<Result<Vec<_>>>();
    let call = http_request("POST", "/mcp", MODERN_CALL_HEADERS, &modern_call());
    Load::open(address, vec![call; 8])?.run(Duration::from_millis(200))?;
    drop(open(WARM_UP)?);
    settle();
    let before = resident_bytes(server.pid())?;
    let held = open(count)?;
    // Every stream gets notifications, as in practice.
    for _ in 0..EVENTS {
        server.told("tell")?;
        settle();
    }
    let after = resident_bytes(server.pid())?;
    drop(held);
    Ok(after.saturating_sub(before) as f64 / count as f64)
}

/// Lets the server process closed connections and finish deferred work.
fn settle() {
    thread::sleep(Duration::from_millis(500));
}

fn session(address: SocketAddr) -> Result<Option<TcpStream>> {
    open_session(address).map(|_| None)
}

fn session_with_stream(address: SocketAddr) -> Result<Option<TcpStream>> {
    let session = open_session(address)?;
    let mut stream = connect(address)?;
    open_stream(&mut stream, &http_request("GET", "/mcp", &session_headers(&session), ""))?;
    Ok(Some(stream))
}

fn listen(address: SocketAddr) -> Result<Option<TcpStream>> {
    let mut stream = connect(address)?;
    open_stream(&mut stream, &http_request("POST", "/mcp", LISTEN_HEADERS, LISTEN))?;
    Ok(Some(stream))
}
