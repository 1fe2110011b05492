//! A server whose tasks run steps, elicit, sleep and emit, and that records every step in a file.
//!
//! `crash-server STORE ORACLE NAME LEASE_MS [foreign]` serves HTTP on a free port and prints its
//! address. It ends with its standard input, so it does not outlive its parent. STORE is
//! `sqlite:PATH` or `postgres://...`. NAME identifies the process in the file ORACLE. With
//! `foreign` the server declares tasks, but none of our extensions.
//!
//! A line is `MILLISECONDS RUN JOB EVENT ...`. A RUN is `NAME#NUMBER`, with a new number for each
//! run of the handler. Each line is one append, so lines of several processes keep their order and
//! a killed process leaves only whole lines.

use std::{
    env,
    error::Error,
    fs::{File, OpenOptions},
    io::{Read, Write},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outlive::{
    Form,
    server::{
        Args, CallToolResult, Durable, Json, Result, Server, State, Tool,
        http::HttpConfig,
        tasks::{ResponseMode, TaskConfig, TaskPolicy},
    },
    store::{PostgresStore, SqliteStore, Store},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;

/// Parameters of a task.
#[derive(Deserialize, JsonSchema)]
struct Job {
    /// Name of the job in the oracle.
    name: String,
    steps: u32,
    /// Duration of a step.
    #[serde(default)]
    step_ms: u64,
    /// Pause after a step.
    #[serde(default)]
    pause_ms: u64,
    /// The step before which the job elicits.
    ask_at: Option<u32>,
    /// The step before which the job sleeps.
    sleep_at: Option<u32>,
    #[serde(default)]
    sleep_ms: u64,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    /// Any word. The result repeats it.
    word: String,
}

/// The result of a task: the run that executed each step, and the run that ended it.
#[derive(Serialize)]
struct Report {
    job: String,
    answer: Option<String>,
    steps: Vec<String>,
    by: String,
}

/// The file that all processes append to and none of them reads.
struct Oracle {
    file: File,
    name: String,
    runs: AtomicU64,
}

impl Oracle {
    fn open(path: &Path, name: &str) -> std::io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file, name: name.to_owned(), runs: AtomicU64::new(0) })
    }

    fn begin<'a>(&'a self, job: &'a str) -> Result<Run<'a>> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        let run = Run { oracle: self, job, name: format!("{}#{number}", self.name) };
        run.note("run")?;
        Ok(run)
    }
}

/// One run of a handler.
struct Run<'a> {
    oracle: &'a Oracle,
    job: &'a str,
    name: String,
}

impl Run<'_> {
    fn note(&self, event: &str) -> Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let line = format!("{now} {} {} {event}\n", self.name, self.job);
        // One system call per line, so that lines of several processes do not mix.
        Ok((&self.oracle.file).write_all(line.as_bytes())?)
    }
}

async fn work(cx: Durable, Args(job): Args<Job>, oracle: State<Oracle>) -> Result<String> {
    let run = oracle.begin(&job.name)?;
    let (mut answer, mut steps) = (None, Vec::new());
    for step in 0..job.steps {
        if job.sleep_at == Some(step) {
            run.note("sleep")?;
            cx.sleep("nap", Duration::from_millis(job.sleep_ms)).await?;
        }
        if job.ask_at == Some(step) {
            run.note("ask")?;
            let approval: Approval = cx.elicit("approve", "Go on?").await?;
            run.note(&format!("answered {}", approval.word))?;
            answer = Some(approval.word);
        }
        let done: String = cx
            .step(("step", step), async || {
                // The token identifies the execution whose result was recorded.
                let token = format!("{}:{step}", run.name);
                run.note(&format!("begin {step} {token}"))?;
                sleep(Duration::from_millis(job.step_ms)).await;
                Ok(token)
            })
            .await?;
        run.note(&format!("have {step} {done}"))?;
        steps.push(done);
        sleep(Duration::from_millis(job.pause_ms)).await;
    }
    run.note("end")?;
    let report = Report { job: job.name.clone(), answer, steps, by: run.name.clone() };
    Ok(serde_json::to_string(&report)?)
}

/// Parameters of a task that emits.
#[derive(Deserialize, JsonSchema)]
struct Lines {
    /// Name of the job in the oracle.
    name: String,
    steps: u32,
    /// Segments that each step emits.
    inside: u32,
    /// Segments after each step.
    between: u32,
    /// Duration of a step.
    step_ms: u64,
}

async fn lines(
    cx: Durable,
    Args(job): Args<Lines>,
    oracle: State<Oracle>,
) -> Result<CallToolResult> {
    let run = oracle.begin(&job.name)?;
    for step in 0..job.steps {
        let _: u32 = cx
            .step(("step", step), async || {
                for line in 0..job.inside {
                    cx.emit(format!("{step} inside {line}")).await?;
                }
                sleep(Duration::from_millis(job.step_ms)).await;
                Ok(step)
            })
            .await?;
        for line in 0..job.between {
            cx.emit(format!("{step} between {line}")).await?;
        }
    }
    run.note("end")?;
    Ok(CallToolResult::new([]))
}

/// Returns immediately. Clients call it while servers restart.
async fn quick(Args(job): Args<Job>) -> String {
    sleep(Duration::from_millis(job.step_ms)).await;
    job.name
}

async fn open(store: &str) -> Result<Arc<dyn Store>, Box<dyn Error>> {
    match store.split_once(':') {
        Some(("sqlite", path)) => Ok(Arc::new(SqliteStore::open(path)?)),
        Some(("postgres", _)) => Ok(Arc::new(PostgresStore::connect(store).await?)),
        _ => Err(format!("unknown store `{store}`; use sqlite:PATH or postgres:...").into()),
    }
}

#[tokio::main]
#[expect(
    clippy::print_stdout,
    reason = "the parent process reads the address from standard output"
)]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (store, oracle, name, lease, is_foreign) = match &arguments[..] {
        [store, oracle, name, lease] => (store, oracle, name, lease, false),
        [store, oracle, name, lease, how] if how == "foreign" => (store, oracle, name, lease, true),
        _ => return Err("usage: crash-server STORE ORACLE NAME LEASE_MS [foreign]".into()),
    };
    end_with_standard_input();
    let lease = Duration::from_millis(lease.parse()?);
    let tasks = TaskConfig::new(open(store).await?).max_tasks_per_caller(100_000);
    let tasks = tasks.response_modes([ResponseMode::Streaming]).engine(|engine| {
        engine.lease_duration = lease;
        engine.poll_interval = lease / 8;
        engine.park_after = Duration::from_millis(300);
        engine.cancel_grace = Duration::from_millis(500);
        // One caller generates the whole load.
        engine.max_running_per_caller = Some(engine.max_running);
        // Crashes are far more frequent here than in production.
        engine.max_crashes = 1_000;
    });
    let auto = TaskPolicy::Auto { after: Duration::from_millis(60) };
    let mut server = Server::builder("crash", "1").idempotency_keys(!is_foreign);
    if is_foreign {
        server = server.custom_method("server/discover", || async {
            Json(json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
                "ttlMs": 0,
                "cacheScope": "private",
            }))
        });
    }
    let server = server
        .tasks(tasks)
        .state(Oracle::open(oracle.as_ref(), name)?)
        .tool(Tool::new("work", work).task(TaskPolicy::Always))
        .tool(Tool::new("soon", work).task(auto))
        .tool(Tool::new("lines", lines).task(TaskPolicy::Always).streams_content())
        .tool(Tool::new("quick", quick))
        .build()?;
    let http = HttpConfig::new()
        .shutdown_grace(Duration::from_secs(1))
        // All clients share one address.
        .max_sessions_per_caller(10_000)
        .max_connections_per_address(10_000);
    let serving = server.serve_http("127.0.0.1:0", http).await?;
    println!("{}", serving.address());
    Ok(serving.wait().await?)
}

fn end_with_standard_input() {
    std::thread::spawn(|| {
        let mut input = std::io::stdin();
        while matches!(input.read(&mut [0; 64]), Ok(1..)) {}
        std::process::exit(0);
    });
}
