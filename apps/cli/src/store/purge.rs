//! `outlive store purge`.

use std::{process::ExitCode, time::Duration};

use outlive::{operator::Operator, store::PurgeOutcome};
use serde::Serialize;

use super::{
    access::{self, no_task},
    format::{phase_word, plain, wall_clock},
    json,
    output::say,
    span,
};
use crate::{
    error::{CliError, Result},
    print::talk,
};

/// Number of tasks deleted per transaction, so that servers can write in between.
const AT_ONCE: usize = 1_000;

/// Deletes ended tasks and all their data.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store purge TASK
  outlive store purge postgres://outlive@db/outlive --ended-before 30d
  outlive store purge TASK --force

Servers delete ended tasks by themselves when the TTL elapses. A task that has not ended is deleted only with --force: \
its worker stops, and its client gets the error for an unknown task. The audit log records the deletion. \
With --json each task is one JSON object on a line.")]
pub(super) struct Args {
    /// URL of the store (default: the one in the data folder), and task IDs
    #[arg(value_name = "URL TASK")]
    words: Vec<String>,
    /// All tasks that ended longer ago than this: 90s, 15m, 36h, 30d
    #[arg(long, value_name = "SPAN", value_parser = span)]
    ended_before: Option<Duration>,
    /// Also tasks that have not ended, or whose cleanup is pending
    #[arg(long, conflicts_with = "ended_before")]
    force: bool,
    /// Prints JSON lines
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Serialize)]
struct Done<'a> {
    id: &'a str,
    purged: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Serialize)]
struct Count {
    purged: usize,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let (url, words) = access::url_and_words(args.words)?;
    if words.is_empty() != args.ended_before.is_some() {
        return Err(CliError::usage("name either tasks or --ended-before").remedy(
            "pass task IDs, or --ended-before SPAN for all tasks that ended before that time",
        ));
    }
    let operator = access::open(&url).await?;
    if let Some(span) = args.ended_before {
        return all_ended(&operator, span, args.json).await;
    }
    let tasks = access::tasks(&operator, words).await?;
    let mut all = true;
    for task in &tasks {
        let purged = operator.purge(task, args.force).await.map_err(access::trouble)?;
        let why = match &purged {
            Some(PurgeOutcome::Purged(..)) => None,
            Some(PurgeOutcome::NotEnded(phase)) => {
                Some(format!("it is {}; pass --force to delete it anyway", phase_word(*phase)))
            }
            Some(PurgeOutcome::CleanupPending) => {
                Some("its cleanup is pending; pass --force to delete it anyway".to_owned())
            }
            None => Some("no such task".to_owned()),
        };
        all &= why.is_none();
        match (args.json, why) {
            (true, why) => json::print(&Done { id: task.as_str(), purged: why.is_none(), why })?,
            (false, None) => say(&format!("{} is deleted", plain(task.as_str())))?,
            (false, Some(_)) if purged.is_none() => drop(no_task(task.as_str()).tell()),
            (false, Some(why)) => talk!("error: {} was not deleted: {why}", plain(task.as_str())),
        }
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn all_ended(operator: &Operator, span: Duration, json: bool) -> Result<ExitCode> {
    let before = wall_clock().saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    let mut purged = 0;
    loop {
        let gone = operator.purge_ended(before, AT_ONCE).await.map_err(access::trouble)?;
        purged += gone;
        if gone < AT_ONCE {
            break;
        }
    }
    match json {
        true => json::print(&Count { purged })?,
        false => say(&format!("{purged} tasks deleted"))?,
    }
    Ok(ExitCode::SUCCESS)
}
