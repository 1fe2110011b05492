//! Calls with progress: one event stream per call, with one notification and with a hundred. The
//! difference is the cost of notifications.

use anyhow::{Context, Result};

use super::Plan;
use crate::{
    child::Server,
    load::{Loaded, http::Load},
    machine::Cores,
    messages::{COUNT_HEADERS, count_call, http_request},
    peers::{Peer, Peers, Serves, Serving},
    report::{Bar, Report},
    slices::{self, Series, Slice, Target},
};

const CONNECTIONS: usize = 16;
const FEW: u32 = 1;
const MANY: u32 = 100;

pub(super) fn measure(plan: &Plan, peers: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let (control, control_address) = Server::listening("control-progress", cores)?;
    let (outlive, address) = Server::listening("outlive-progress", cores)?;
    let progress = |_: &Peer| Some(vec!["progress".to_owned()]);
    let others = peers.start(Serves::Progress, "2026-07-28", progress, cores);
    let open = |name: &str, server: &Server, address, path: &str, steps: u32| {
        let request = http_request("POST", path, COUNT_HEADERS, &count_call(steps));
        let text = format!("counted to {steps}");
        let load = Load::telling(address, vec![request; CONNECTIONS], &text, steps as usize)
            .with_context(|| format!("the first calls to {name}"))?;
        anyhow::Ok(Loaded::new(&format!("{name}, {}", notifications(steps)), server, load))
    };
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    for steps in [FEW, MANY] {
        targets.push(Box::new(open("bare axum", &control, control_address, "/mcp", steps)?));
        targets.push(Box::new(open("Outlive", &outlive, address, "/mcp", steps)?));
    }
    let mut names = vec!["bare axum".to_owned(), "Outlive".to_owned()];
    for Serving { peer, server, address, name } in &others {
        let both = [FEW, MANY].map(|steps| open(name, server, *address, &peer.path, steps));
        let [few, many] = both;
        let both = few.and_then(|few| Ok([few, many?]));
        let Some(both) = peers.keep(name, both) else { continue };
        for one in both {
            targets.push(Box::new(one.of(peer)));
        }
        names.push(name.clone());
    }
    eprintln!("measuring progress");
    let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
    tell(&names, &series, report);
    Ok(())
}

fn notifications(count: u32) -> String {
    format!("{count} notification{}", if count == 1 { "" } else { "s" })
}

fn tell(names: &[String], series: &[Series], report: &mut Report) {
    // Control and ours with few, the same with many; then each peer with few and with many.
    let [control_few, ours_few, control_many, ours_many, peers @ ..] = series else { return };
    let cpu = |slice: &Slice| slice.cpu;
    report.title(&format!(
        "A call with progress, {CONNECTIONS} kept connections, {FEW} or {MANY} notifications"
    ));
    let few = ours_few.ratio(control_few, cpu);
    report.ratio(&format!("Outlive / bare axum, {} (CPU)", notifications(FEW)), few);
    let many = ours_many.ratio(control_many, cpu);
    report.ratio(&format!("Outlive / bare axum, {} (CPU)", notifications(MANY)), many);
    for pair in peers.chunks_exact(2) {
        for (theirs, ours) in pair.iter().zip([ours_few, ours_many]) {
            report.ratio(&format!("{} / Outlive (CPU)", theirs.name), theirs.ratio(ours, cpu));
        }
    }
    report.series(series);
    let pairs = [(control_few, control_many), (ours_few, ours_many)];
    let pairs = pairs.into_iter().chain(peers.chunks_exact(2).map(|pair| (&pair[0], &pair[1])));
    for (name, (few, many)) in names.iter().zip(pairs) {
        let [few, many] = [few, many].map(|series| series.spread(cpu).median);
        let each = (many - few) / f64::from(MANY - FEW);
        report.figure(&format!("{name}, each notification (CPU)"), each, " µs");
        report.figure(&format!("{name}, the call without (CPU)"), few - each, " µs");
    }
    let name = format!("a call with {MANY} notifications, CPU relative to bare axum");
    report.bar(Bar::at_most(&name, Some(many.spread.median), 1.2, "x"));
}
