//! The list of suites and its execution.

use super::plan::Plan;
use super::{auth, client, cold, http, lifecycle, memory, payload, progress, stdio, tasks, tools};
use crate::{
    machine::{Cores, describe, load_average, pin},
    peers::Peers,
    report::Report,
};
use anyhow::Result;

/// A suite, and whether it includes peers.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    has_peers: bool,
    measure: fn(&Plan, &Peers, Cores, &mut Report) -> Result<()>,
}

/// All suites, in the order of execution.
pub(crate) const SUITES: &[Suite] = &[
    Suite {
        name: "http",
        about: "tools/call over HTTP, 2026-07-28 and in a session of 2025-11-25",
        has_peers: true,
        measure: http::measure,
    },
    Suite {
        name: "progress",
        about: "calls with a stream of events, with 1 and 100 notifications",
        has_peers: true,
        measure: progress::measure,
    },
    Suite {
        name: "payload",
        about: "1 KiB to 4 MiB in and out",
        has_peers: true,
        measure: payload::measure,
    },
    Suite {
        name: "tools",
        about: "a call among 1, 100 and 10,000 tools",
        has_peers: true,
        measure: tools::measure,
    },
    Suite {
        name: "stdio",
        about: "tools/call on a pipe, one at a time and 64 in flight",
        has_peers: false,
        measure: stdio::measure,
    },
    Suite {
        name: "auth",
        about: "tools/call over HTTP with a cached JWT, beside a call without",
        has_peers: false,
        measure: auth::measure,
    },
    Suite {
        name: "cold",
        about: "from the start of a process to its first response",
        has_peers: true,
        measure: cold::measure,
    },
    Suite {
        name: "client",
        about: "our client beside rmcp's, 64 calls in flight",
        has_peers: true,
        measure: client::measure,
    },
    Suite {
        name: "memory",
        about: "memory of an idle session and of an open stream",
        has_peers: false,
        measure: memory::measure,
    },
    Suite {
        name: "lifecycle",
        about: "tasks over HTTP beside peers, among 1,000 and 1,000,000 stored",
        has_peers: true,
        measure: lifecycle::measure,
    },
    Suite {
        name: "tasks",
        about: "durable tasks beside bare commits, by figure",
        has_peers: false,
        measure: tasks::measure,
    },
];

/// Runs the selected suites.
pub(crate) fn run(plan: &Plan) -> Result<Report> {
    let wanted =
        |suite: &&Suite| plan.only.is_empty() || plan.only.iter().any(|it| it == suite.name);
    let suites: Vec<&Suite> = SUITES.iter().filter(wanted).collect();
    let peers = match suites.iter().any(|suite| suite.has_peers) {
        true => Peers::prepare(&plan.peers)?,
        false => Peers::default(),
    };
    let cores = Cores::choose()?;
    pin(cores.generator)?;
    let mut report = Report::default();
    report.say(format!(
        "{}. {} rounds of {} ms; servers on core {}, load from core {}; load average {} at the start.",
        describe()?,
        plan.rounds,
        plan.slice.as_millis(),
        cores.server,
        cores.generator,
        load_average()?
    ));
    report.say(
        "A slice is disturbed if other processes or the hypervisor used more than a tenth of a core. \
         Ratios are medians of adjacent slices, without the rounds that have a disturbed slice if enough \
         others remain.",
    );
    for suite in suites {
        // A failed suite must not lose the figures of the others.
        if let Err(error) = (suite.measure)(plan, &peers, cores, &mut report) {
            report.fail(suite.name, &error);
            pin(cores.generator)?;
        }
        report.say(format!("Load average {} at the end of `{}`.", load_average()?, suite.name));
    }
    for line in peers.left_out() {
        report.say(format!("**{line}**"));
    }
    Ok(report)
}
