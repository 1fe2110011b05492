//! `outlive store retry`.

use std::process::ExitCode;

use outlive::{
    operator::Operator,
    store::{Phase, RetryOutcome, TaskFilter, TaskId},
};
use serde::Serialize;

use super::{
    access::{self, no_task},
    format::{phase_word, plain},
    json,
    list::page,
    output::say,
};
use crate::{
    error::{CliError, Result},
    print::talk,
};

/// Retries quarantined tasks: after repeated crashes, or because what they had recorded
/// could not be read any more.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store retry TASK
  outlive store retry postgres://outlive@db/outlive TASK TASK
  outlive store retry --all-quarantined --tool deploy

A task goes on from what it has recorded, under the same name; the next free server takes it. What has ended is
refused, because its client was told and what has ended never changes: call the tool again. All others go on by
themselves. With --json each task is a JSON object on a line of its own.")]
pub(super) struct Args {
    /// The store, if it is not the one in the data folder, and the tasks
    #[arg(value_name = "URL TASK")]
    words: Vec<String>,
    /// All quarantined tasks
    #[arg(long)]
    all_quarantined: bool,
    /// With --all-quarantined, only those of this tool
    #[arg(long, value_name = "NAME", requires = "all_quarantined")]
    tool: Option<String>,
    /// Print JSON lines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Done<'a> {
    id: &'a str,
    retried: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let (url, words) = access::url_and_words(args.words)?;
    if words.is_empty() != args.all_quarantined {
        return Err(CliError::usage("no tasks are named, or too many")
            .remedy("name the tasks, or --all-quarantined for all quarantined tasks"));
    }
    let operator = access::open(&url).await?;
    let tasks = match args.all_quarantined {
        true => quarantined(&operator, args.tool).await?,
        false => access::tasks(&operator, words).await?,
    };
    let mut all = true;
    for task in &tasks {
        let retried = operator.retry(task).await.map_err(access::trouble)?;
        let why = match retried {
            Some(RetryOutcome::Queued(_)) => None,
            Some(RetryOutcome::NotQuarantined(phase)) => Some(reason(phase)),
            None => Some("there is no such task"),
        };
        all &= why.is_none();
        match (args.json, why) {
            (true, why) => {
                json::print(&Done { id: task.as_str(), retried: why.is_none(), why })?;
            }
            (false, None) => say(&format!("{} is queued", plain(task.as_str())))?,
            (false, Some(_)) if retried.is_none() => drop(no_task(task.as_str()).tell()),
            (false, Some(why)) => {
                talk!("error: {} is not tried again: {why}", plain(task.as_str()))
            }
        }
    }
    if tasks.is_empty() {
        talk!("no task is quarantined");
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn quarantined(operator: &Operator, tool: Option<String>) -> Result<Vec<TaskId>> {
    let filter = TaskFilter::default().phase(Some(Phase::Quarantined)).tool(tool);
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let (tasks, next) = page(operator, &filter, after.as_ref(), 500).await?;
        all.extend(tasks.into_iter().map(|task| task.view.id));
        after = match next {
            Some(next) => Some(next),
            None => return Ok(all),
        };
    }
}

fn reason(phase: Phase) -> &'static str {
    match phase {
        Phase::Ended => "it has ended, and what has ended never changes; call the tool again",
        Phase::Running => "a worker has it",
        Phase::Queued => "it waits for a worker already",
        Phase::Parked => "it waits for an answer or a time, and goes on by itself",
        Phase::Quarantined => phase_word(Phase::Quarantined),
    }
}
