//! What is measured: calls over HTTP, calls on a pipe, the client, what is held open, and tasks.

mod client;
mod http;
mod memory;
mod stdio;
mod tasks;

use std::time::Duration;

use anyhow::Result;

use crate::{
    machine::{Cores, load_average, pin},
    place::Kind,
    report::Report,
};

/// How much is measured.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) rounds: usize,
    pub(crate) slice: Duration,
    /// Sessions and streams that are held open.
    pub(crate) held: usize,
    /// Tasks in a large store.
    pub(crate) stored: u64,
    /// Tasks that are parked.
    pub(crate) parked: u64,
    pub(crate) peers: bool,
    pub(crate) http: bool,
    pub(crate) stdio: bool,
    pub(crate) client: bool,
    pub(crate) memory: bool,
    pub(crate) tasks: bool,
    /// Where tasks are kept.
    pub(crate) store: Kind,
    /// The one figure of the tasks that is wanted, if not all are.
    pub(crate) figure: Option<String>,
}

/// Takes the figures.
pub(crate) fn run(plan: &Plan) -> Result<Report> {
    let cores = Cores::choose()?;
    pin(cores.generator)?;
    let mut report = Report::default();
    report.say(format!(
        "{} rounds of {} ms; servers on core {}, asked from core {}; load average {} at the start",
        plan.rounds,
        plan.slice.as_millis(),
        cores.server,
        cores.generator,
        load_average()?
    ));
    if plan.http {
        http::measure(plan, cores, &mut report)?;
    }
    if plan.stdio {
        stdio::measure(plan, cores, &mut report)?;
    }
    if plan.client {
        client::measure(plan, cores, &mut report)?;
    }
    if plan.memory {
        memory::measure(plan, cores, &mut report)?;
    }
    if plan.tasks {
        tasks::measure(plan, cores, &mut report)?;
    }
    report.say(format!("load average {} at the end", load_average()?));
    Ok(report)
}
