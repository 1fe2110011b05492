//! Kills of upstream processes under load.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::left::{open_files, running, sockets_and_folders};
use super::load::Load;
use crate::crash::random::Random;
use crate::gateway::serving::{Gateway, Home, MARKED, signal};
use crate::gateway::setting::Setting;
use crate::hosts::home::resident;
use crate::row::Row;

const UPSTREAMS: usize = 4;
const MIB: u64 = 1 << 20;

/// Growth of the memory of the gateway, between a tenth of the kills and all.
const MAX_GROWTH: u64 = 5 * MIB;

/// Growth of the number of its open files.
const MAX_FILES: usize = 8;

/// Time in which calls end and processes start again.
const SETTLE: Duration = Duration::from_secs(2);

/// Memory and open files of the gateway.
#[derive(Clone, Copy, Debug)]
struct Size {
    memory: u64,
    files: usize,
}

impl Size {
    fn of(gateway: &Gateway<'_>) -> Result<Self> {
        Ok(Self { memory: resident(gateway.id())?, files: open_files(gateway.id())? })
    }
}

/// Returns the file of upstreams that return their argument.
pub(super) fn file(program: &Path, names: &[String]) -> String {
    let upstream = |name: &String| {
        let program = program.display();
        format!("[upstreams.{name}]\ncommand = [\"{program}\", \"honest\"]\n{MARKED}\n")
    };
    names.iter().map(upstream).collect()
}

pub(super) fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("files-{number}")).collect()
}

pub(super) fn run(setting: &Setting) -> Result<Vec<Row>> {
    let target = setting.choose(1_000, 40);
    let program = setting.program_beside("hostile-upstream")?;
    let names = names(UPSTREAMS);
    let home = Home::new(setting, "kills", &file(&program, &names))?;
    let mut gateway = home.start()?;
    let load = Load::new(gateway.address, &names)?;
    load.warm_up()?;
    let mut random = Random::new(setting.seed);
    let mut kill = |count| kill_processes(&home, &program, &names, count, &mut random);
    // A tenth first: caches and the allocator fill.
    let (first, warm) = load.during(|| kill(target / 10))?;
    thread::sleep(SETTLE);
    let before = Size::of(&gateway)?;
    let (rest, calls) = load.during(|| kill(target - target / 10))?;
    thread::sleep(SETTLE);
    let after = Size::of(&gateway)?;
    gateway.check()?;
    gateway.stop()?;
    let processes = home.wait_for_no_processes(Duration::from_secs(10))?.len();
    let (sockets, folders) = sockets_and_folders(&home.data())?;

    let (kills, wrong) = (first + rest, [warm.wrong, calls.wrong].concat());
    let mut figure = format!(
        "{kills} kills: {} results, {} errors that name the upstream, {} other ends",
        warm.results + calls.results,
        warm.named + calls.named,
        wrong.len()
    );
    wrong.first().into_iter().for_each(|first| figure.push_str(&format!("; first: {first}")));
    let is_met = kills >= target && wrong.is_empty() && calls.results > 0 && calls.named > 0;
    let case = "kills of upstream processes under load";
    let calls = Row::new(case, figure, format!("{target} kills, 0 other ends"), is_met);
    let grown = after.memory.saturating_sub(before.memory);
    let files = after.files.saturating_sub(before.files);
    let figure = format!(
        "{processes} processes, {sockets} sockets, {folders} folders left; memory grows by {:.1} MiB, open files by {files}",
        grown as f64 / MIB as f64
    );
    let is_met = processes + sockets + folders == 0 && grown <= MAX_GROWTH && files <= MAX_FILES;
    let bar = format!("0 left, ≤ {} MiB, ≤ {MAX_FILES} files", MAX_GROWTH / MIB);
    Ok(vec![calls, Row::new("what the kills leave", figure, bar, is_met)])
}

/// Kills processes of all upstreams, one after the other. Returns their number.
fn kill_processes(
    home: &Home,
    program: &Path,
    names: &[String],
    count: usize,
    random: &mut Random,
) -> Result<usize> {
    let mut kills = 0;
    while kills < count {
        let processes = running(program, &home.processes()?);
        if processes.is_empty() {
            // Starts wait after exits, up to a minute; an operator can end that.
            for name in names {
                home.outlive(&["upstreams", "restart", name])?;
            }
            thread::sleep(random.millis(100..300));
            continue;
        }
        let process = processes[random.below(processes.len())];
        // It may have exited meanwhile.
        kills += usize::from(signal("KILL", process).is_ok());
        thread::sleep(random.millis(1..20));
    }
    Ok(kills)
}
