//! Latency at a fixed rate: what the gateway adds to a direct call.

use std::time::Duration;

use anyhow::Result;

use super::ours::Ours;
use crate::{
    load::paced::percentile,
    report::{Bar, Report},
    slices::Spread,
    suite::Plan,
};

/// Calls per second.
const RATE: u32 = 1_000;

/// Shortest and usual number of rounds, and of slices that make up one.
const ROUNDS: usize = 5;
const SLICES: u32 = 7;

/// Largest p99 that the gateway adds, in milliseconds.
const MAX_ADDED: f64 = 1.0;

pub(super) fn measure(plan: &Plan, ours: &Ours, report: &mut Report) -> Result<()> {
    eprintln!("measuring latency at {RATE} calls per second");
    let time = plan.slice * SLICES;
    let (mut direct, mut through, mut added) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..(plan.rounds / 2).max(ROUNDS) {
        let pace =
            |load: &std::cell::RefCell<crate::load::http::Load>| load.borrow_mut().pace(RATE, time);
        // Every other round reverses the order.
        let (alone, relayed) = match round % 2 {
            0 => {
                let alone = pace(&ours.direct)?;
                (alone, pace(&ours.modern)?)
            }
            _ => {
                let relayed = pace(&ours.modern)?;
                (pace(&ours.direct)?, relayed)
            }
        };
        added.push(millis(percentile(&relayed, 99.0)) - millis(percentile(&alone, 99.0)));
        direct.extend(alone);
        through.extend(relayed);
    }
    let rounds = added.len();
    let added = Spread::of(added);
    report.title(&format!("Latency at {RATE} calls per second, generator on its own core"));
    for (name, all) in [("direct call", &direct), ("gateway", &through)] {
        for percent in [50.0, 99.0] {
            let name = format!("{name}, p{percent:.0}");
            report.figure(&name, millis(percentile(all, percent)), " ms");
        }
    }
    report.figure(&format!("added p99, median of {rounds} rounds"), added.median, " ms");
    report.figure("added p99, upper quartile", added.p75, " ms");
    let name = format!("p99 that the gateway adds at {RATE} calls per second");
    report.bar(Bar::at_most(&name, Some(added.median), MAX_ADDED, " ms"));
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
