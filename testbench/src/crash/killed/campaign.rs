//! The campaign: runs, kills, and the verdict.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use super::judge::{self, Outcome, Run};
use super::phase::{Phase, is_shown};
use crate::crash::database::Database;
use crate::crash::fleet::{Fleet, Reaped, Setting};
use crate::crash::oracle::{Event, Line};
use crate::crash::random::Random;
use crate::crash::{
    setting::{LEASE, folder, in_folder, number, program},
    table,
};
use xtask::args::Args;
use xtask::process::Build;

/// Number of concurrent clients.
const CLIENTS: u64 = 4;
/// Maximum duration of a client that is not killed.
const PATIENCE: Duration = Duration::from_secs(60);
/// From this number of runs on, each phase must have been hit.
const ENOUGH: u64 = 200;
/// One run without idempotency keys per this number of runs with keys.
const FOREIGN: u64 = 2;

const PHASES: [(Phase, &str); 6] = [
    (Phase::Before, "  before the call was sent"),
    (Phase::Sent, "  call sent, no handle"),
    (Phase::Handle, "  handle saved"),
    (Phase::Shown, "  input request shown"),
    (Phase::Answered, "  answered"),
    (Phase::End, "  after the end"),
];

/// The call of a run.
#[derive(Clone, Copy, Debug)]
struct Shape {
    tool: &'static str,
    steps: u32,
    ask_at: u32,
}

/// An immediate task, a promoted task, and an input request before promotion.
const SHAPES: [Shape; 3] = [
    Shape { tool: "work", steps: 5, ask_at: 3 },
    Shape { tool: "soon", steps: 6, ask_at: 4 },
    Shape { tool: "soon", steps: 5, ask_at: 0 },
];
const STEP_MS: u64 = 20;

pub(crate) fn run(mut args: Args) -> Result<()> {
    let runs = number(&mut args, "--runs")?.unwrap_or(ENOUGH);
    let seed = number(&mut args, "--seed")?.unwrap_or(u64::from(std::process::id()));
    let build = Build::wanted(&mut args);
    let server = program(&mut args, "--server", "crash-server", build)?;
    let client = program(&mut args, "--client", "crash-client", build)?;
    args.finish()?;
    println!("killed clients: --seed {seed} chooses the same moments again");
    let folder = folder("killed-clients")?;
    in_folder(&folder, || {
        let mut random = Random::new(seed);
        for (name, more, runs) in
            [("keys", &[][..], runs), ("no-keys", &["foreign"][..], runs.div_ceil(FOREIGN))]
        {
            let folder = folder.join(name);
            fs::create_dir(&folder)?;
            let database = Database::start("sqlite", &folder)?;
            let setting = Setting {
                program: server.clone(),
                folder: folder.clone(),
                store: database.url(),
                lease: LEASE,
                more,
            };
            let leg = Leg {
                has_keys: more.is_empty(),
                client: client.clone(),
                fleet: Fleet::start(setting, 1)?,
                folder,
            };
            leg.run(runs, &mut random)?;
        }
        Ok(())
    })
}

/// One server and its killed clients.
struct Leg {
    has_keys: bool,
    client: PathBuf,
    fleet: Fleet,
    folder: PathBuf,
}

impl Leg {
    fn run(&self, runs: u64, random: &mut Random) -> Result<()> {
        let whole = self.calibrate()?;
        let moments: Vec<Duration> = (0..runs)
            .map(|run| {
                // One moment in each part of the duration, so that few runs cover it.
                let within = random.below(1_000_000) as f64 / 1_000_000.0;
                whole.mul_f64((run as f64 + within) / runs as f64)
            })
            .collect();
        let next = AtomicU64::new(0);
        let worker = || {
            let mut done = Vec::new();
            loop {
                let run = next.fetch_add(1, Ordering::Relaxed);
                let Some(moment) = moments.get(run as usize) else { return Ok(done) };
                let shape = SHAPES[run as usize % SHAPES.len()];
                let killed = self.kill(&format!("r{run}"), shape, *moment);
                done.push(killed.with_context(|| format!("run r{run}"))?);
            }
        };
        let done = in_parallel(worker)?.into_iter().flatten().collect::<Vec<_>>();
        let lines = self.fleet.oracle().read()?;
        self.print(&done, &lines, whole);
        let text = fs::read_to_string(self.fleet.oracle().path())?;
        for run in &done {
            judge::judge(run, &lines, self.has_keys)
                .with_context(|| table::story(&lines, &text, &run.job))
                .with_context(|| format!("{}, killed in phase: {:?}", run.job, run.phase))?;
        }
        ensure!(
            self.has_keys || done.iter().any(|run| matches!(run.outcome, Outcome::Maybe)),
            "no call was reported as possibly executed"
        );
        if runs >= ENOUGH {
            let missed =
                PHASES.iter().filter(|(phase, _)| !done.iter().any(|it| it.phase == *phase));
            let missed: Vec<&str> = missed.map(|(_, name)| name.trim()).collect();
            ensure!(
                missed.is_empty(),
                "no kill hit these phases: {}; run again",
                missed.join(", ")
            );
        }
        Ok(())
    }

    /// Measures the duration of a run without a kill, under the same load.
    fn calibrate(&self) -> Result<Duration> {
        let mut all = Vec::new();
        for (number, shape) in SHAPES.into_iter().enumerate() {
            let next = AtomicU64::new(0);
            all.extend(in_parallel(|| {
                let job = format!("alone-{number}-{}", next.fetch_add(1, Ordering::Relaxed));
                let begun = Instant::now();
                let mut lines = self.fleet.oracle().tail()?;
                let client = self.start(&job, 1, shape, Stdio::piped())?;
                let through = lines.find(PATIENCE, |line| line.job == job && is_through(line))?;
                drop(client);
                through.with_context(|| format!("{job} does not exit"))?;
                Ok(begun.elapsed())
            })?);
        }
        all.sort_unstable();
        // Slightly more than the median, so that one slow run has no influence.
        Ok(all[all.len() / 2].mul_f64(1.2))
    }

    /// One run: the client is killed at `moment`, and a second process resumes the call.
    fn kill(&self, job: &str, shape: Shape, moment: Duration) -> Result<Run> {
        // The client waits for the end of standard input, so there is always a process to kill.
        let client = self.start(job, 1, shape, Stdio::piped())?;
        thread::sleep(moment);
        ensure!(client.kill()?, "the first process exited on its own");
        let left = Left::read(&self.folder.join(job))?;
        let lines = self.fleet.oracle().read()?;
        let phase = left.phase(lines.iter().find(|line| line.job == job && is_shown(line)));
        let client = self.start(job, 2, shape, Stdio::null())?;
        let status = client.wait().context("the second process")?;
        ensure!(status.success(), "the second process failed: {status}");
        let last = Left::read(&self.folder.join(job))?;
        ensure!(last.note.is_none(), "saved calls are left: {:?}", last.note);
        let outcome = Outcome::read(last.outcome.as_ref())?;
        let was_calling = left.note.is_some_and(|note| note["stage"].get("Calling").is_some());
        Ok(Run { job: job.to_owned(), steps: shape.steps, phase, was_calling, outcome })
    }

    fn start(&self, job: &str, process: u32, shape: Shape, input: Stdio) -> Result<Reaped> {
        let folder = self.folder.join(job);
        fs::create_dir_all(&folder)?;
        let address = self.fleet.address(0).context("the server is down")?;
        let arguments = json!({
            "name": job, "steps": shape.steps, "step_ms": STEP_MS, "ask_at": shape.ask_at,
        });
        let mut command = Command::new(&self.client);
        command.arg(format!("http://{address}/mcp")).arg(&folder).arg(self.fleet.oracle().path());
        command.arg(format!("{job}.{process}")).arg(shape.tool).arg(arguments.to_string());
        let log = File::create(folder.join(format!("client-{process}.log")))?;
        command.stdin(input).stdout(Stdio::null()).stderr(log);
        let started = command.spawn();
        started
            .map(Reaped::new)
            .with_context(|| format!("could not start {}", self.client.display()))
    }

    fn print(&self, done: &[Run], lines: &[Line], whole: Duration) {
        let title = if self.has_keys {
            "a server with idempotency keys"
        } else {
            "a server without idempotency keys"
        };
        println!("at {title}: runs of up to {} ms", whole.as_millis());
        let count = |is_meant: &dyn Fn(&&Run) -> bool| done.iter().filter(is_meant).count();
        let mut rows = vec![("clients killed", done.len().to_string())];
        for (phase, name) in PHASES {
            rows.push((name, count(&|run| run.phase == phase).to_string()));
        }
        let begun = |run: &&Run| {
            // Only lines before those of the second process.
            let own = lines.iter().filter(|line| line.job == run.job);
            let mut before = own.take_while(|line| !line.who.ends_with(".2"));
            run.phase == Phase::Sent && before.any(|line| line.event == Event::Run)
        };
        let in_jobs = |event: &dyn Fn(&Line) -> bool| {
            let own = lines.iter().filter(|line| line.job.starts_with('r'));
            own.filter(|line| event(line)).count().to_string()
        };
        rows.extend([
            ("  call sent and tool running", count(&begun).to_string()),
            ("results read", count(&|run| matches!(run.outcome, Outcome::Result(_))).to_string()),
            (
                "reported as possibly executed",
                count(&|run| matches!(run.outcome, Outcome::Maybe)).to_string(),
            ),
            ("steps executed", in_jobs(&|line| matches!(line.event, Event::Begin { .. }))),
            ("input requests shown", in_jobs(&is_shown)),
            ("  of these interrupted by the kill", judge::cut_off(done).to_string()),
            ("input responses that reached a tool", judge::answers(done, lines).to_string()),
        ]);
        table::print(&rows);
    }
}

fn is_through(line: &Line) -> bool {
    line.event == Event::Other("through".to_owned())
}

/// The files that a process left.
#[derive(Debug)]
struct Left {
    note: Option<Value>,
    outcome: Option<Value>,
}

impl Left {
    fn read(folder: &Path) -> Result<Self> {
        let mut notes = Vec::new();
        let calls = folder.join("calls");
        if calls.exists() {
            for entry in fs::read_dir(calls)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "json") {
                    notes.push(read(&path)?);
                }
            }
        }
        ensure!(notes.len() <= 1, "one call was saved {} times", notes.len());
        let outcome = folder.join("outcome");
        let outcome = outcome.exists().then(|| read(&outcome)).transpose()?;
        Ok(Self { note: notes.pop(), outcome })
    }

    /// Determines the phase of the kill from the files and the line of the shown input request.
    fn phase(&self, shown: Option<&Line>) -> Phase {
        let Some(note) = self.note.as_ref().filter(|_| self.outcome.is_none()) else {
            return if self.outcome.is_some() { Phase::End } else { Phase::Before };
        };
        let stage = &note["stage"];
        let has_answer = note["answers"].as_object().is_some_and(|answers| !answers.is_empty());
        let has_round = stage.get("Calling").is_some_and(|round| !round.is_null());
        let is_task = stage.get("Task").is_some();
        // If there is a task, the input request before it already has its response.
        let before_the_task = |line: &Line| line.event == Event::Other("shown round".to_owned());
        match shown {
            _ if stage.get("Done").is_some() || stage.get("Failed").is_some() => Phase::End,
            _ if has_round || has_answer => Phase::Answered,
            Some(line) if is_task && before_the_task(line) => Phase::Answered,
            Some(_) => Phase::Shown,
            None if is_task => Phase::Handle,
            None => Phase::Sent,
        }
    }
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

/// Runs the same work on several threads.
fn in_parallel<T: Send>(work: impl Fn() -> Result<T> + Sync) -> Result<Vec<T>> {
    thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(&work)).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(_) => bail!("a client thread panicked"),
        });
        joined.collect()
    })
}
