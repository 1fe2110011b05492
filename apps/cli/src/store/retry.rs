//! `outlive store retry`.

use std::{process::ExitCode, slice};

use outlive::{
    operator::Operator,
    people::{BulkAction, People, PeopleError, Visitor},
    store::{Phase, RetryOutcome, TaskFilter, TaskId, open_people},
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
  outlive store retry --all-quarantined --tool deploy --name INC-42

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
    /// With --all-quarantined, name under which the audit log lists the tasks
    #[arg(long, value_name = "NAME", requires = "all_quarantined")]
    name: Option<String>,
    /// Prints JSON lines
    #[arg(long)]
    pub(super) json: bool,
}

/// Reason for an unknown task.
const NO_TASK: &str = "no such task";

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
    let people = match &args.name {
        Some(_) => Some(open_people(&url).await.map_err(access::trouble)?),
        None => None,
    };
    let people = people.map(People::open).transpose().map_err(CliError::usage)?;
    let mut all = true;
    for task in &tasks {
        let why = match (&people, &args.name) {
            (Some(people), Some(name)) => named(people, task, name).await?,
            _ => alone(&operator, task).await?,
        };
        all &= why.is_none();
        match (args.json, why) {
            (true, why) => {
                json::print(&Done { id: task.as_str(), retried: why.is_none(), why })?;
            }
            (false, None) => say(&format!("{} is queued", plain(task.as_str())))?,
            (false, Some(NO_TASK)) => drop(no_task(task.as_str()).tell()),
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

/// Retries a task. Returns the reason if it is not queued.
async fn alone(operator: &Operator, task: &TaskId) -> Result<Option<&'static str>> {
    Ok(match operator.retry(task).await.map_err(access::trouble)? {
        Some(RetryOutcome::Queued(_)) => None,
        Some(RetryOutcome::NotQuarantined(phase)) => Some(reason(phase)),
        None => Some(NO_TASK),
    })
}

/// Retries a task as part of a bulk action. Returns the reason if it is not queued.
async fn named(people: &People, task: &TaskId, name: &str) -> Result<Option<&'static str>> {
    let (visitor, tasks) = (Visitor::operator(), slice::from_ref(task));
    let retried = people.act_on_selected(&visitor, BulkAction::Retry, tasks, name).await;
    match retried {
        Ok(0) => Ok(Some("it is no longer quarantined")),
        Ok(_) => Ok(None),
        Err(PeopleError::Store(error)) => Err(access::trouble(error)),
        Err(error) => Err(CliError::usage(error).remedy("pass another --name")),
    }
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
