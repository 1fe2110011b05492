//! The list of suites and its execution.

use super::plan::Plan;
use super::{
    auth, client, cold, gateway, http, lifecycle, memory, payload, progress, stdio, tasks, tools,
};
use crate::{
    machine::{Cores, describe, load_average, pin},
    peers::{self, Peers},
    report::Report,
};
use anyhow::Result;

/// A suite, and its third-party programs.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    beside: Beside,
    measure: fn(&Plan, &Peers, Cores, &mut Report) -> Result<()>,
}

/// The third-party programs of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    None,
    /// Servers and clients of other SDKs.
    Peers,
    Gateways,
}

/// All suites, in the order of execution.
pub(crate) const SUITES: &[Suite] = &[
    Suite {
        name: "http",
        about: "tools/call over HTTP, 2026-07-28 and in a session of 2025-11-25",
        beside: Beside::Peers,
        measure: http::measure,
    },
    Suite {
        name: "progress",
        about: "calls with a stream of events, with 1 and 100 notifications",
        beside: Beside::Peers,
        measure: progress::measure,
    },
    Suite {
        name: "payload",
        about: "1 KiB to 4 MiB in and out",
        beside: Beside::Peers,
        measure: payload::measure,
    },
    Suite {
        name: "tools",
        about: "a call among 1, 100 and 10,000 tools",
        beside: Beside::Peers,
        measure: tools::measure,
    },
    Suite {
        name: "stdio",
        about: "tools/call on a pipe, one at a time and 64 in flight",
        beside: Beside::None,
        measure: stdio::measure,
    },
    Suite {
        name: "auth",
        about: "tools/call over HTTP with a cached JWT, beside a call without",
        beside: Beside::None,
        measure: auth::measure,
    },
    Suite {
        name: "cold",
        about: "from the start of a process to its first response",
        beside: Beside::Peers,
        measure: cold::measure,
    },
    Suite {
        name: "client",
        about: "our client beside rmcp's, 64 calls in flight",
        beside: Beside::Peers,
        measure: client::measure,
    },
    Suite {
        name: "memory",
        about: "memory of an idle session, an open stream, and a connection of the gateway",
        beside: Beside::None,
        measure: memory::measure,
    },
    Suite {
        name: "gateway",
        about: "calls through the gateway beside direct calls and third-party gateways",
        beside: Beside::Gateways,
        measure: gateway::calls,
    },
    Suite {
        name: "gateway-lists",
        about: "300 tools of 10 upstreams: warm, cold, with search; start with 20 upstreams",
        beside: Beside::None,
        measure: gateway::lists,
    },
    Suite {
        name: "lifecycle",
        about: "tasks over HTTP beside peers, among 1,000 and 1,000,000 stored",
        beside: Beside::Peers,
        measure: lifecycle::measure,
    },
    Suite {
        name: "tasks",
        about: "durable tasks beside bare commits, by figure",
        beside: Beside::None,
        measure: tasks::measure,
    },
];

/// Runs the selected suites.
pub(crate) fn run(plan: &Plan) -> Result<Report> {
    let wanted =
        |suite: &&Suite| plan.only.is_empty() || plan.only.iter().any(|it| it == suite.name);
    let suites: Vec<&Suite> = SUITES.iter().filter(wanted).collect();
    peers::check_names(&plan.peers)?;
    let has = |beside| suites.iter().any(|suite| suite.beside == beside);
    let mut peers = match has(Beside::Peers) {
        true => Peers::prepare(&plan.peers)?,
        false => Peers::default(),
    };
    if has(Beside::Gateways) {
        peers.prepare_gateways(&plan.peers)?;
    }
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
