//! Attacks of one or more upstreams behind one gateway, beside an honest upstream.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::cases::{Calls, Case};
use super::honest::{self, Experience};
use crate::gateway::serving::{ADA, Home, MARKED};
use crate::gateway::setting::Setting;
use crate::hosts::caller::{Caller, text};
use crate::hosts::home::resident;

/// Time until the status names an attack.
const STATUS: Duration = Duration::from_secs(15);

/// Interval of the samples of memory.
const SAMPLE: Duration = Duration::from_millis(20);

/// Measurements during attacks.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) cases: Vec<Outcome>,
    pub(super) honest: Experience,
    /// Growth of the memory of the gateway, at its peak.
    pub(super) memory: u64,
    /// Processes that were left after the gateway ended.
    pub(super) orphans: usize,
}

/// Outcome of one case.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) name: &'static str,
    /// Time of the slowest call.
    pub(super) slowest: Duration,
    /// Why the case fails.
    pub(super) failures: Vec<String>,
}

/// Runs attacks at once. The upstreams are in one gateway.
pub(super) fn run(setting: &Setting, name: &str, cases: &[&'static Case]) -> Result<Observed> {
    let program = setting.program_beside("hostile-upstream")?;
    let home = Home::new(setting, name, &file(setting, &program, cases))?;
    let mut gateway = home.start()?;
    let caller = Caller::modern(gateway.address, Some(ADA));
    let message = caller.call("honest__echo", json!({"text": "first"}))?;
    ensure!(text(&message) == "first", "the honest upstream fails before the attacks: {message}");
    let before = resident(gateway.id())?;
    let is_over = AtomicBool::new(false);
    let (process, caller, home) = (gateway.id(), &caller, &home);
    let calls = setting.choose(3, 2);
    let (outcomes, honest, peak) = thread::scope(|scope| {
        let honest = scope.spawn(|| honest::run(caller, &is_over));
        let memory = scope.spawn(|| peak(process, &is_over));
        let attacks: Vec<_> = cases
            .iter()
            .map(|case| scope.spawn(move || attack(case, calls, caller, home)))
            .collect();
        let outcomes: Vec<_> = attacks.into_iter().map(|attack| attack.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        (outcomes, honest.join(), memory.join())
    });
    let cases: Vec<Outcome> = outcomes
        .into_iter()
        .map(|outcome| outcome.ok().context("the thread of an attack panicked"))
        .collect::<Result<_>>()?;
    gateway.check()?;
    gateway.stop()?;
    Ok(Observed {
        cases,
        honest: honest.ok().context("the honest thread panicked")?,
        memory: peak.ok().context("a thread panicked")?.saturating_sub(before),
        orphans: home.wait_for_no_processes(Duration::from_secs(10))?.len(),
    })
}

/// The file of a gateway with an honest upstream and those of the cases.
fn file(setting: &Setting, program: &Path, cases: &[&Case]) -> String {
    let upstream = |name: &str, keys: &str, count: usize| {
        let program = program.display();
        format!(
            "[upstreams.{name}]\ncommand = [\"{program}\", \"{name}\", \"{count}\"]\n{MARKED}\n{keys}\n"
        )
    };
    let mut text = upstream("honest", "", 0);
    for case in cases {
        let [full, short] = case.count;
        text.push_str(&upstream(case.name, case.keys, setting.choose(full, short)));
    }
    text
}

/// Calls a hostile upstream, and checks its status.
fn attack(case: &'static Case, calls: usize, caller: &Caller, home: &Home) -> Outcome {
    let mut outcome = Outcome { name: case.name, slowest: Duration::ZERO, failures: Vec::new() };
    for number in 0..calls {
        let own = format!("{} {number}", case.name);
        let begun = Instant::now();
        let called = caller.call(&format!("{}__echo", case.name), json!({"text": own}));
        outcome.slowest = outcome.slowest.max(begun.elapsed());
        let failure = match called {
            Ok(message) => wrong(case, &own, &message),
            Err(error) => Some(format!("no response: {error}")),
        };
        outcome.failures.extend(failure);
    }
    if !is_named(case, home) {
        let status = home.status(case.name).unwrap_or_default();
        outcome.failures.push(format!("the status does not name it: {status}"));
    }
    outcome
}

/// Returns why a response is wrong.
fn wrong(case: &Case, own: &str, message: &Value) -> Option<String> {
    let said = text(message);
    let is_right = match case.calls {
        // The upstream adds the code of the error that it got.
        Calls::Succeed if case.name == "undeclared-input" => said == format!("{own} -32601"),
        Calls::Succeed => said == own,
        Calls::Fail => message["result"]["isError"] == true && said.contains(case.name),
        Calls::HaveNoTool => message.to_string().contains(case.name),
    };
    (!is_right).then(|| message.to_string().chars().take(300).collect())
}

/// Waits until the status names the attack.
fn is_named(case: &Case, home: &Home) -> bool {
    let end = Instant::now() + STATUS;
    loop {
        let status = home.status(case.name).unwrap_or_default();
        let parts = ["reason", "last_error", "warnings", "changed_tools"];
        let text: Vec<String> = parts.iter().map(|part| status[part].to_string()).collect();
        let text = text.join(" ");
        if case.named.iter().any(|word| text.contains(word)) {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// The largest memory of a process until the end.
fn peak(process: u32, is_over: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !is_over.load(Ordering::Relaxed) {
        peak = peak.max(resident(process).unwrap_or_default());
        thread::sleep(SAMPLE);
    }
    peak
}
