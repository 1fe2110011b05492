//! Measures the steps of a Rust tool and of a tool worker in one server with a SQLite store.
//!
//! `step-cost FOLDER NAME=VALUE PROGRAM ARGUMENT…` starts the tool worker with this variable, and
//! prints one JSON object: for `rust` and for `worker`, the nanoseconds of single steps and the steps
//! per second of 64 parallel calls. The calls of both take turns.

#![allow(clippy::print_stdout, reason = "the figures are the product")]

use std::{
    env,
    error::Error,
    path::PathBuf,
    time::{Duration, Instant},
};

use outlive::{
    client::Client,
    server::{
        Args, Durable, Json, Result, Server, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
};
use outlive_workers::{ToolNames, ToolWorker, WorkerSettings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Steps of one call, and calls of each tool, for the times of single steps.
const STEPS: u32 = 200;
const CALLS: usize = 10;
/// Parallel calls, their steps, and the turns of each tool.
const PARALLEL: usize = 64;
const PARALLEL_STEPS: u32 = 100;
const TURNS: usize = 3;

/// The tool in Rust, and that of the tool worker.
const TOOLS: [&str; 2] = ["rust_steps", "steps"];

#[derive(Deserialize, JsonSchema)]
struct Steps {
    count: u32,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Times {
    nanos: Vec<u64>,
}

#[derive(Default, Serialize)]
struct Figures {
    nanos: Vec<u64>,
    per_second: f64,
}

async fn rust_steps(cx: Durable, Args(Steps { count }): Args<Steps>) -> Result<Json<Times>> {
    let mut nanos = Vec::new();
    for number in 0..count {
        let started = Instant::now();
        let _: u32 = cx.step(("n", number), async || Ok(number)).await?;
        nanos.push(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(Json(Times { nanos }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let usage = "usage: step-cost FOLDER NAME=VALUE PROGRAM ARGUMENT…";
    let mut arguments = env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or(usage)?);
    let variable = arguments.next().ok_or(usage)?;
    let (name, value) = variable.split_once('=').ok_or(usage)?;
    let settings = WorkerSettings::new("bench", arguments.collect::<Vec<_>>());
    let settings = settings.env(name, value).env("EXECUTIONS", folder.join("executions"));
    let worker = ToolWorker::start(settings.max_concurrent(PARALLEL), ToolNames::new()).await?;
    let store = format!("sqlite:{}", folder.join("tasks.db").display());
    let rust = Tool::new(TOOLS[0], rust_steps).task(TaskPolicy::Always);
    let tasks = TaskConfig::open(&store).await?;
    let builder = Server::builder("step-cost", "1").tool(rust).tasks(tasks);
    let server = worker.attach(builder).build()?;
    worker.serve(&server);
    let client = Client::builder("step-cost", "1").connect(&server).await?;
    let mut figures: [Figures; 2] = Default::default();
    // The first call of each warms the caches.
    for turn in 0..=CALLS {
        for (tool, figures) in TOOLS.iter().zip(&mut figures) {
            let result = client.call_tool(*tool, json!({"count": STEPS})).as_task().await?;
            let content = result.structured_content.ok_or("the tool returned no times")?;
            let times: Times = serde_json::from_str(content.get())?;
            if turn > 0 {
                figures.nanos.extend(times.nanos);
            }
        }
    }
    let mut spent = [Duration::ZERO; 2];
    for _ in 0..TURNS {
        for (tool, spent) in TOOLS.iter().zip(&mut spent) {
            let started = Instant::now();
            let mut tasks = Vec::new();
            for _ in 0..PARALLEL {
                tasks.push(client.start_tool(*tool, json!({"count": PARALLEL_STEPS})).await?);
            }
            for mut task in tasks {
                task.wait().await?;
            }
            *spent += started.elapsed();
        }
    }
    let steps = (TURNS * PARALLEL) as f64 * f64::from(PARALLEL_STEPS);
    for (figures, spent) in figures.iter_mut().zip(spent) {
        figures.per_second = steps / spent.as_secs_f64();
    }
    let [rust, own] = figures;
    println!("{}", json!({"rust": rust, "worker": own}));
    worker.shutdown().await;
    Ok(())
}
