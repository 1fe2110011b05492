//! Processor time per relayed call, beside that of a direct call and of third-party gateways.

use std::{cell::RefCell, rc::Rc};

use anyhow::{Context, Result};

use super::{
    clients::{CONNECTIONS, Era, requests},
    latency,
    ours::{Ours, Relayed, Way},
};
use crate::{
    gateways::{Client, Gateway, Upstream},
    load::{Generator, http::Load, lines::LineLoad},
    machine::{Cores, helpers_of},
    peers::Peers,
    report::{Bar, Report},
    slices::{self, Ratio, Series, Slice, Target},
    suite::Plan,
    wanted::Wanted,
};

/// Bar of a relayed call, relative to a direct one.
const MAX_TIMES: f64 = 2.2;

/// Third-party gateways with a bar that must be measured at least.
const MIN_MEASURED: f64 = 2.0;

/// Fewest rounds beside a third-party gateway.
const MIN_ROUNDS: usize = 6;

pub(in crate::suite) fn measure(
    plan: &Plan,
    peers: &Peers,
    cores: Cores,
    report: &mut Report,
) -> Result<()> {
    let ours = Ours::start(cores)?;
    eprintln!("measuring calls through the gateway");
    let series = slices::take(&mut ours.targets(), plan.rounds, plan.slice)?;
    tell(&ours.ways(), &series, report);
    report.series(&series);
    let mut measured = 0_u32;
    for gateway in &peers.gateways {
        eprintln!("measuring {}", gateway.label());
        let opened = beside(gateway, &ours, plan, cores);
        let Some((ratio, series)) = peers.keep(&gateway.label(), opened) else { continue };
        let name = format!("{} / {} (CPU)", series[1].name, series[0].name);
        report.ratio(&name, ratio);
        report.series(&series);
        if let Some(times) = gateway.times {
            measured += 1;
            let name = format!("{}, CPU relative to our gateway", gateway.label());
            report.bar(Bar::at_least(&name, Some(ratio.spread.median), times, "x"));
        }
    }
    if !matches!(plan.peers, Wanted::None) {
        let name = "measured of FastMCP proxy, ContextForge, mcp-proxy and mcp-gateway";
        report.bar(Bar::at_least(name, Some(f64::from(measured)), MIN_MEASURED, ""));
    }
    latency::measure(plan, &ours, report)
}

/// Reports the ratios of our own targets.
fn tell(ways: &[Way], series: &[Series], report: &mut Report) {
    let find = |way| ways.iter().position(|it| *it == way).map(|at| &series[at]);
    report.title(&format!("Calls through the gateway, {CONNECTIONS} kept connections"));
    let mut ratio = |name: &str, way, to| {
        let ratio = find(way)?.ratio(find(to)?, cpu);
        report.ratio(name, ratio);
        Some(ratio.spread.median)
    };
    let modern = ratio("2026-07-28, gateway / direct (CPU)", Way::Modern, Way::Direct);
    let legacy = ratio(
        "2025-11-25 sessions on both sides, gateway / direct (CPU)",
        Way::Legacy,
        Way::DirectLegacy,
    );
    ratio("2026-07-28, gateway as a library / direct (CPU)", Way::Library, Way::Direct);
    ratio("2026-07-28, server on stdio, gateway / direct (CPU)", Way::Stdio, Way::Direct);
    ratio("2026-07-28, server on stdio, supervisor / direct (CPU)", Way::Supervisor, Way::Direct);
    let name = "2026-07-28 call, CPU of the gateway relative to a direct call";
    report.bar(Bar::at_most(name, modern, MAX_TIMES, "x"));
    let name = "2025-11-25 call, CPU of the gateway relative to a direct call";
    report.bar(Bar::at_most(name, legacy, MAX_TIMES, "x"));
}

/// Measures a third-party gateway and ours in adjacent slices. Returns the ratio, and the series of
/// ours and theirs.
fn beside(
    gateway: &Gateway,
    ours: &Ours,
    plan: &Plan,
    cores: Cores,
) -> Result<(Ratio, Vec<Series>)> {
    let way = match (gateway.client, gateway.upstream) {
        (Client::Stdio, _) => Way::Pipe,
        (_, Upstream::Stdio) => Way::Stdio,
        (Client::Modern, Upstream::Http) => Way::Modern,
        (Client::Legacy, Upstream::Http) => Way::Legacy,
    };
    let our_target = ours.target(way).context("our gateway is not measured this way")?;
    let mut running = gateway.start(&ours.url, cores)?;
    let load: Rc<RefCell<dyn Generator>> = match running.streams.take() {
        Some((stdin, stdout)) => Rc::new(RefCell::new(LineLoad::open(stdin, stdout)?)),
        None => {
            let era = match gateway.client {
                Client::Modern => Era::Modern,
                _ => Era::Legacy,
            };
            let requests = requests(era, running.address, &running.path, &running.tool)?;
            Rc::new(RefCell::new(Load::open(running.address, requests)?))
        }
    };
    let pid = running.server.pid();
    let (name, others) = (gateway.label(), helpers_of(pid)?);
    let target = Relayed { name, pid, others, helper: None, has_helpers: true, load };
    let mut pair: [Box<dyn Target>; 2] = [our_target, Box::new(target)];
    let rounds = (plan.rounds / 2).max(MIN_ROUNDS);
    let series = slices::take(&mut pair, rounds, plan.slice)?;
    Ok((series[1].ratio(&series[0], cpu), series))
}

fn cpu(slice: &Slice) -> f64 {
    slice.cpu
}
