//! `outlive store list`.

use std::{process::ExitCode, time::Duration};

use outlive::{
    operator::Operator,
    store::{ListCursor, OutcomeKind, Phase, TaskFilter, TaskSummary},
};

use super::output::say;
use super::{
    access,
    format::{plain, rough, shortened, state, table, wall_clock},
    json, span,
};
use crate::{error::Result, print::talk};

/// Number of tasks read per query.
const PAGE: usize = 500;

/// Default number of tasks in a list.
const NEWEST: usize = 50;

/// Lists tasks, newest first.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store list --phase quarantined
  outlive store list postgres://outlive@db/outlive --tool deploy --older-than 2h
  outlive store list --all --json | jq -r 'select(.state == \"failed\") | .id'

With --json each task is one JSON object on a line.")]
pub(super) struct Args {
    /// Store: sqlite:FILE or postgres://…
    url: Option<String>,
    #[command(flatten)]
    which: Which,
    /// Maximum number of tasks
    #[arg(long, default_value_t = NEWEST, value_name = "COUNT")]
    limit: usize,
    /// Lists all tasks
    #[arg(long, conflicts_with = "limit")]
    all: bool,
    /// Prints JSON lines
    #[arg(long)]
    pub(super) json: bool,
}

/// Filter for tasks.
#[derive(clap::Args)]
pub(super) struct Which {
    /// Only tasks in this phase
    #[arg(long, value_enum)]
    phase: Option<PhaseName>,
    /// Only tasks that ended with this outcome
    #[arg(long, value_enum)]
    outcome: Option<OutcomeName>,
    /// Only tasks of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only tasks of this caller, written as in the list
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Only tasks created longer ago than this: 90s, 15m, 36h, 30d
    #[arg(long, value_name = "SPAN", value_parser = span)]
    older_than: Option<Duration>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PhaseName {
    /// Waits for a worker
    Queued,
    /// Executed by a worker
    Running,
    /// Waits for input or a timer
    Parked,
    /// Stopped until an operator retries it
    Quarantined,
    /// Ended
    Ended,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum OutcomeName {
    /// With a result
    Completed,
    /// With an error, or a result that is a tool error
    Failed,
    /// Cancelled by the caller or an operator
    Cancelled,
    /// The TTL elapsed
    Expired,
}

impl Which {
    pub(super) fn filter(&self) -> TaskFilter {
        let phase = self.phase.map(|phase| match phase {
            PhaseName::Queued => Phase::Queued,
            PhaseName::Running => Phase::Running,
            PhaseName::Parked => Phase::Parked,
            PhaseName::Quarantined => Phase::Quarantined,
            PhaseName::Ended => Phase::Ended,
        });
        let before = self.older_than.map(|span| {
            wall_clock().saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
        });
        let outcome = self.outcome.map(|outcome| match outcome {
            OutcomeName::Completed => OutcomeKind::Completed,
            OutcomeName::Failed => OutcomeKind::Failed,
            OutcomeName::Cancelled => OutcomeKind::Cancelled,
            OutcomeName::Expired => OutcomeKind::Expired,
        });
        let (kind, principal) = (self.tool.clone(), self.principal.clone());
        TaskFilter::default()
            .phase(phase)
            .outcome(outcome)
            .tool(kind)
            .principal(principal)
            .before(before)
    }
}

/// Lists the newest tasks of all callers.
pub(crate) async fn of_all(url: &str, json: bool) -> Result<ExitCode> {
    let which = Which { phase: None, outcome: None, tool: None, principal: None, older_than: None };
    run(Args { url: Some(url.to_owned()), which, limit: NEWEST, all: false, json }).await
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let operator = access::open(&access::url_or_own(args.url)?).await?;
    let filter = args.which.filter();
    let most = if args.all { usize::MAX } else { args.limit };
    let (mut rows, mut after, mut left) = (Vec::new(), None, most);
    while left > 0 {
        let (page, next) = page(&operator, &filter, after.as_ref(), left.min(PAGE)).await?;
        left -= page.len();
        for task in &page {
            match args.json {
                true => json::print(&json::Task::of(task))?,
                false => rows.push(row(task)),
            }
        }
        after = match next {
            Some(next) => Some(next),
            None => break,
        };
    }
    if !args.json {
        match rows.is_empty() {
            true => talk!("no tasks match"),
            false => say(table(HEAD, &rows).trim_end())?,
        }
        if left == 0 {
            talk!("there may be more tasks; pass --all or --limit COUNT");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns one page of tasks, and the cursor of the next page.
pub(super) async fn page(
    operator: &Operator,
    filter: &TaskFilter,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<(Vec<TaskSummary>, Option<ListCursor>)> {
    let page = operator.list(filter, after, limit).await.map_err(access::trouble)?;
    let last = page.last().filter(|_| page.len() == limit);
    let next = last.map(|last| ListCursor::new(last.view.created_at, last.view.id.clone()));
    Ok((page, next))
}

const HEAD: [&str; 6] = ["TASK", "TOOL", "STATE", "AGE", "CALLER", "MESSAGE"];

fn row(task: &TaskSummary) -> [String; 6] {
    let view = &task.view;
    [
        plain(view.id.as_str()),
        shortened(&plain(&view.tool), 30),
        state(task).to_owned(),
        rough(wall_clock().saturating_sub(view.created_at)),
        shortened(&plain(&task.principal), 30),
        shortened(&plain(view.status_message.as_deref().unwrap_or_default()), 60),
    ]
}
