//! Our client beside rmcp's, with the same server: 64 calls in flight on one connection, and on 32.
//!
//! The client is the measured process; the server runs on the other core.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};

use super::Plan;
use crate::{
    child::{Caller, Server},
    machine::Cores,
    peers::{self, Peers},
    report::{Bar, Report},
    slices::{self, Slice, Target},
};

/// Calls in flight over all connections.
const IN_FLIGHT: usize = 64;

/// The connection to the server.
#[derive(Clone, Copy, Debug)]
enum Way {
    Http(SocketAddr),
    Stdio,
}

pub(super) fn measure(plan: &Plan, peers: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let ours: PathBuf = std::env::current_exe().context("could not find this program")?;
    let peer = peers.has("rmcp").then(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../peers");
        peers::build(&folder, "rmcp-bench-client")
    });
    let peer = peer.transpose()?;
    let (server, address) = Server::listening("outlive-http", cores)?;
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    let mut pairs = Vec::new();
    for (way, name) in [(Way::Http(address), "HTTP"), (Way::Stdio, "stdio")] {
        for version in ["2025-11-25", "2026-07-28"] {
            for connections in [1, 32] {
                // One process per connection would measure processes rather than clients.
                if matches!(way, Way::Stdio) && connections > 1 {
                    continue;
                }
                let start = |program: &Path, words: &[&str], who: &str| {
                    let words = arguments(words, version, connections, way, &ours, cores);
                    let server = matches!(way, Way::Http(_)).then(|| server.pid());
                    let name = format!("{who}, {name} {version}, {connections}");
                    Calling::start(name, program, &words, server, cores)
                };
                pairs.push((targets.len(), format!("{name} {version}, {connections} conn.")));
                targets.push(Box::new(start(&ours, &["client"], "Outlive")?));
                if let Some(peer) = &peer {
                    targets.push(Box::new(start(peer, &[], "rmcp")?));
                }
            }
        }
    }
    eprintln!("measuring clients");
    let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
    report.title("The client, 64 tools/call in flight");
    for (at, name) in pairs {
        let (Some(ours), Some(theirs)) = (series.get(at), series.get(at + 1)) else { continue };
        if peer.is_none() {
            continue;
        }
        let rate = ours.ratio(theirs, |slice: &Slice| slice.rate);
        report.ratio(&format!("{name}, Outlive / rmcp (calls/s)"), rate);
        let cpu = ours.ratio(theirs, |slice: &Slice| slice.cpu);
        report.ratio(&format!("{name}, Outlive / rmcp (CPU)"), cpu);
        let name = format!("client, {name}, calls/s relative to rmcp's client");
        report.bar(Bar::at_least(&name, Some(rate.spread.median), 1.5, "x"));
    }
    report.series(&series);
    Ok(())
}

/// The arguments of a client.
fn arguments(
    words: &[&str],
    version: &str,
    connections: usize,
    way: Way,
    bench: &Path,
    cores: Cores,
) -> Vec<OsString> {
    let in_flight = (IN_FLIGHT / connections).to_string();
    let mut words: Vec<OsString> = words.iter().map(OsString::from).collect();
    words.extend([version, &connections.to_string(), &in_flight].map(OsString::from));
    match way {
        Way::Http(address) => words.push(format!("http://{address}/mcp").into()),
        Way::Stdio => {
            words.extend(["--".into(), bench.into()]);
            let core = cores.server.to_string();
            words.extend(["on", &core, "serve", "outlive-stdio"].map(OsString::from));
        }
    }
    words
}

/// A client and its server.
struct Calling {
    name: String,
    caller: Caller,
    server: u32,
}

impl Calling {
    fn start(
        name: String,
        program: &Path,
        words: &[OsString],
        server: Option<u32>,
        cores: Cores,
    ) -> Result<Self> {
        let caller = Caller::start(program, words, cores).with_context(|| name.clone())?;
        let server = match server {
            Some(server) => server,
            None => caller.only_child()?,
        };
        Ok(Self { name, caller, server })
    }
}

impl Target for Calling {
    fn name(&self) -> &str {
        &self.name
    }

    fn pid(&self) -> u32 {
        self.caller.pid()
    }

    fn helper(&self) -> Option<u32> {
        Some(self.server)
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        self.caller.call(time)
    }
}
