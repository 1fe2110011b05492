//! The cost by number of registered tools: one is called, among 1, 100 and 10,000.

use anyhow::{Context, Result};

use super::Plan;
use crate::{
    child::Server,
    load::{Loaded, http::Load},
    machine::Cores,
    messages::{MODERN_CALL_HEADERS, http_request, modern_call},
    peers::{Peer, Peers, Serves, Serving},
    report::{Bar, Report},
    slices::{self, Slice, Target},
};

const CONNECTIONS: usize = 8;
const COUNTS: [usize; 3] = [1, 100, 10_000];

pub(super) fn measure(plan: &Plan, peers: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let open = |name: &str, server: &Server, address, path: &str| {
        let request = http_request("POST", path, MODERN_CALL_HEADERS, &modern_call());
        let load = Load::open(address, vec![request; CONNECTIONS])
            .with_context(|| format!("the first calls to {name}"))?;
        anyhow::Ok(Loaded::new(name, server, load))
    };
    let mut servers = Vec::new();
    for tools in COUNTS {
        servers.push(Server::counting("outlive-tools", tools, cores)?);
    }
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    // Each target, and the position of the same target with one tool.
    let mut firsts = Vec::new();
    for ((server, address), tools) in servers.iter().zip(COUNTS) {
        targets.push(Box::new(open(&shown("Outlive", tools), server, *address, "/mcp")?));
        firsts.push(0);
    }
    let others = COUNTS.map(|tools| {
        let calls = |peer: &Peer| {
            let is_able = peer.most_tools >= tools && peer.most_tools > 1;
            is_able.then(|| vec!["calls".to_owned(), tools.to_string()])
        };
        peers.start(Serves::Calls, "2026-07-28", calls, cores)
    });
    for (of_one, tools) in others.iter().zip(COUNTS) {
        for Serving { peer, server, address, name } in of_one {
            let name = shown(name, tools);
            let opened = open(&name, server, *address, &peer.path);
            let Some(target) = peers.keep(&name, opened) else { continue };
            let first = shown(&peer.label(), 1);
            let first = targets.iter().position(|target| target.name() == first);
            firsts.push(first.unwrap_or(targets.len()));
            targets.push(Box::new(target.of(peer)));
        }
    }
    eprintln!("measuring tools");
    let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
    let cpu = |slice: &Slice| slice.cpu;
    report.title(&format!("Tools registered, one of them called, {CONNECTIONS} kept connections"));
    let mut most = None;
    for (at, (one, first)) in series.iter().zip(&firsts).enumerate() {
        if at != *first {
            let ratio = one.ratio(&series[*first], cpu);
            report.ratio(&format!("{} / with 1 (CPU)", one.name), ratio);
            if at + 1 == COUNTS.len() {
                most = Some(ratio.spread.median);
            }
        }
    }
    report.series(&series);
    report.bar(Bar::at_most(
        "a call among 10,000 tools, CPU relative to a single tool",
        most,
        1.1,
        "x",
    ));
    Ok(())
}

fn shown(name: &str, tools: usize) -> String {
    format!("{name}, {tools} tools")
}
