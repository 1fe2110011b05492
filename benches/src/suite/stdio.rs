//! `tools/call` on a pipe: one at a time, and 64 in flight.

use std::{cell::RefCell, rc::Rc, time::Duration};

use anyhow::{Result, ensure};

use super::Plan;
use crate::{
    child::Server,
    load::stdio::Load,
    machine::Cores,
    messages::modern_call,
    peers::Peers,
    report::{Bar, Report},
    slices::{self, Slice, Target},
};

const IN_FLIGHT: usize = 64;

pub(super) fn measure(plan: &Plan, _: &Peers, cores: Cores, report: &mut Report) -> Result<()> {
    let (control, stdin, stdout) = Server::piped("control-stdio", cores)?;
    let control_load = Load::open(stdin, stdout, &modern_call())?;
    let (outlive, stdin, stdout) = Server::piped("outlive-stdio", cores)?;
    let outlive_load = Load::open(stdin, stdout, &modern_call())?;
    let [theirs, ours] =
        [&control_load, &outlive_load].map(|load| String::from_utf8_lossy(load.answer()));
    ensure!(theirs == ours, "the control returns other bytes:\n{theirs}\n{ours}");
    let [control_load, outlive_load] =
        [control_load, outlive_load].map(|load| Rc::new(RefCell::new(load)));
    let target = |name, server: &Server, load: &Rc<RefCell<Load>>, in_flight| -> Box<dyn Target> {
        Box::new(Stdio { name, pid: server.pid(), load: Rc::clone(load), in_flight })
    };
    let mut targets = [
        target("blocking loop, 64 in flight", &control, &control_load, IN_FLIGHT),
        target("Outlive, 64 in flight", &outlive, &outlive_load, IN_FLIGHT),
        target("blocking loop, one at a time", &control, &control_load, 1),
        target("Outlive, one at a time", &outlive, &outlive_load, 1),
    ];
    eprintln!("measuring calls on a pipe");
    let series = slices::take(&mut targets, plan.rounds, plan.slice)?;
    let [control, outlive, control_one, outlive_one] = &series[..] else { return Ok(()) };
    report.title("Tools/call on stdio");
    let (rate, cpu) = (|slice: &Slice| slice.rate, |slice: &Slice| slice.cpu);
    let many = outlive.ratio(control, rate);
    report.ratio("64 in flight, Outlive / blocking loop (calls/s)", many);
    report.ratio("64 in flight, Outlive / blocking loop (CPU)", outlive.ratio(control, cpu));
    report.ratio(
        "one at a time, Outlive / blocking loop (calls/s)",
        outlive_one.ratio(control_one, rate),
    );
    report
        .ratio("one at a time, Outlive / blocking loop (CPU)", outlive_one.ratio(control_one, cpu));
    report.series(&series);
    let share = Some(many.spread.median * 100.0);
    report.bar(Bar::at_least(
        "stdio, 64 in flight, calls/s relative to the blocking loop",
        share,
        80.0,
        "%",
    ));
    Ok(())
}

/// A server on a pipe with a number of calls in flight.
struct Stdio {
    name: &'static str,
    pid: u32,
    load: Rc<RefCell<Load>>,
    in_flight: usize,
}

impl Target for Stdio {
    fn name(&self) -> &str {
        self.name
    }

    fn pid(&self) -> u32 {
        self.pid
    }

    fn load(&mut self, time: Duration) -> Result<u64> {
        self.load.borrow_mut().run(self.in_flight, time)
    }
}
