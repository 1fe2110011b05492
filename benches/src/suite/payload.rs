//! The cost by payload: a text of 1 KiB to 4 MiB is the argument and the result.

use anyhow::{Context, Result, ensure};

use super::Plan;
use crate::{
    child::Server,
    load::{Loaded, http::Load},
    machine::Cores,
    messages::{MODERN_CALL_HEADERS, http_request, modern_call_with, text_of},
    peers::{Peer, Peers, Serves, Serving},
    report::{Bar, Report},
    slices::{self, Slice, Target},
};

/// Few connections: the payloads in flight exceed the caches, but are not only queued.
const CONNECTIONS: usize = 4;

const SIZES: [(usize, &str); 5] = [
    (1 << 10, "1 KiB"),
    (16 << 10, "16 KiB"),
    (256 << 10, "256 KiB"),
    (MEBI, "1 MiB"),
    (4 * MEBI, "4 MiB"),
];

const MEBI: usize = 1 << 20;

pub(super) fn measure(plan: &Plan, peers: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let (control, control_address) = Server::listening("control-payload", cores)?;
    let (outlive, address) = Server::listening("outlive-payload", cores)?;
    let calls = |peer: &Peer| peer.is_rust().then(|| vec!["calls".to_owned(), "1".to_owned()]);
    let others = peers.start(Serves::Calls, "2026-07-28", calls, cores);
    report.title(&format!("Payload in and out, {CONNECTIONS} kept connections"));
    let cpu = |slice: &Slice| slice.cpu;
    let mut at_a_mebibyte = None;
    let mut all = Vec::new();
    for (size, shown) in SIZES {
        eprintln!("measuring a payload of {shown}");
        let text = text_of(size);
        let body = modern_call_with(&text);
        let open = |path: &str, address| {
            let request = http_request("POST", path, MODERN_CALL_HEADERS, &body);
            Load::telling(address, vec![request; CONNECTIONS], &text, 0)
                .with_context(|| format!("the first calls with {shown}"))
        };
        let bare = open("/mcp", control_address)?;
        let ours = open("/mcp", address)?;
        ensure!(bare.answer() == ours.answer(), "the control returns other bytes");
        let mut targets: Vec<Box<dyn Target>> = vec![
            Box::new(Loaded::new(&format!("bare axum, {shown}"), &control, bare)),
            Box::new(Loaded::new(&format!("Outlive, {shown}"), &outlive, ours)),
        ];
        for Serving { peer, server, address, name } in &others {
            // One size is enough for peers.
            if size != MEBI {
                continue;
            }
            let name = format!("{name}, {shown}");
            let Some(load) = peers.keep(&name, open(&peer.path, *address)) else { continue };
            targets.push(Box::new(Loaded::new(&name, server, load).of(peer)));
        }
        let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
        let [control, ours, theirs @ ..] = &series[..] else { continue };
        let ratio = ours.ratio(control, cpu);
        if size == MEBI {
            at_a_mebibyte = Some(ratio.spread.median);
        }
        report.ratio(&format!("{shown}, Outlive / bare axum (CPU)"), ratio);
        for peer in theirs {
            report.ratio(&format!("{} / bare axum (CPU)", peer.name), peer.ratio(control, cpu));
            report.ratio(&format!("{} / Outlive (CPU)", peer.name), peer.ratio(ours, cpu));
        }
        all.extend(series);
    }
    report.series(&all);
    report.bar(Bar::at_most(
        "1 MiB in and out, CPU relative to bare axum",
        at_a_mebibyte,
        1.2,
        "x",
    ));
    Ok(())
}
