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

/// Retries quarantined tasks: tasks that crashed repeatedly, or whose journal could not be read.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store retry TASK
  outlive store retry postgres://outlive@db/outlive TASK TASK
  outlive store retry --all-quarantined --tool deploy

A retried task keeps its ID and resumes from its journal on the next free worker. An ended task cannot be retried, \
because its status is final: call the tool again. Tasks in any other phase need no retry. \
With --json each task is one JSON object on a line.")]
pub(super) struct Args {
    /// URL of the store (default: the one in the data folder), and task IDs
    #[arg(value_name = "URL TASK")]
    words: Vec<String>,
    /// All quarantined tasks
    #[arg(long)]
    all_quarantined: bool,
    /// With --all-quarantined, only tasks of this tool
    #[arg(long, value_name = "NAME", requires = "all_quarantined")]
    tool: Option<String>,
    /// Prints JSON lines
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
        return Err(CliError::usage("name either tasks or --all-quarantined")
            .remedy("pass task IDs, or --all-quarantined for all quarantined tasks"));
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
            None => Some("no such task"),
        };
        all &= why.is_none();
        match (args.json, why) {
            (true, why) => {
                json::print(&Done { id: task.as_str(), retried: why.is_none(), why })?;
            }
            (false, None) => say(&format!("{} is queued", plain(task.as_str())))?,
            (false, Some(_)) if retried.is_none() => drop(no_task(task.as_str()).tell()),
            (false, Some(why)) => {
                talk!("error: {} was not retried: {why}", plain(task.as_str()))
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
        Phase::Ended => "it has ended, and its status is final; call the tool again",
        Phase::Running => "a worker runs it",
        Phase::Queued => "it is already queued",
        Phase::Parked => "it waits for input or a timer, and then resumes",
        Phase::Quarantined => phase_word(Phase::Quarantined),
    }
}
