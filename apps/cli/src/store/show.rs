//! `outlive store show`.

use std::{fmt::Write, process::ExitCode};

use outlive::{
    operator::TaskReport,
    store::{JournalEntry, Phase, TaskDetail, TaskOutcome, TaskSummary},
};

use super::{
    access::{self, Store, no_task},
    format::{plain, shortened, state, table, wall_clock, when},
    json::{self, Line, question_word},
    output::say,
};
use crate::error::{CliError, Result};

/// Displayed length of a value in characters, and displayed number of events.
const VALUE: usize = 100;
const EVENTS: usize = 20;

/// Shows a task: its journal, input requests and events.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  outlive store show TASK
  outlive store show postgres://outlive@db/outlive TASK --full
  outlive store show TASK --json | jq '.journal[] | select(.kind == \"answer\")'

Secret values in the journal are never shown. With --json the output is one JSON object.")]
pub(super) struct Args {
    /// URL of the store (default: the one in the data folder), and the task ID
    #[arg(required = true, num_args = 1..=2, value_name = "URL TASK")]
    words: Vec<String>,
    /// Shows values and events in full
    #[arg(long)]
    full: bool,
    /// Prints JSON
    #[arg(long)]
    pub(super) json: bool,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let (url, words) = access::url_and_words(args.words)?;
    let [word] = &words[..] else {
        return Err(CliError::usage("name exactly one task")
            .remedy("run `outlive store list` to see the task IDs"));
    };
    let store = Store::open(&url).await?;
    let task = store.find(word).await?;
    let shown = store.operator.show(&task).await.map_err(access::trouble)?;
    let shown = shown.ok_or_else(|| no_task(task.as_str()))?;
    match args.json {
        true => json::print(&json::Whole::of(&shown))?,
        false => say(page(&shown, args.full, wall_clock()).trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Formats a task as text.
fn page(shown: &TaskReport, full: bool, now: u64) -> String {
    let TaskDetail { task, request, entries, input_requests: questions, segments, .. } =
        &shown.task;
    let value = |text: &str| match full {
        true => plain(text),
        false => shortened(&plain(text), VALUE),
    };
    let mut page = head(task, now);
    let _ = writeln!(page, "\nrequest\n  {}", value(request.get()));
    if let Some(TaskOutcome::Result(raw)) = &task.view.outcome {
        let _ = writeln!(page, "\nresult\n  {}", value(raw.get()));
    }
    section(&mut page, "journal", entries.iter().map(|(key, entry)| line(key, entry, value)));
    section(
        &mut page,
        "input requests",
        questions.iter().map(|asked| {
            let due = asked.due.map(|due| format!("until {}", when(due, now)));
            [plain(&asked.name), question_word(asked.state).to_owned(), due.unwrap_or_default()]
        }),
    );
    let _ = writeln!(page, "\nsegments  {segments}");
    let skipped = if full { 0 } else { shown.events.len().saturating_sub(EVENTS) };
    section(
        &mut page,
        "events",
        shown.events[skipped..].iter().map(|audit| {
            let event = &audit.event;
            let cause = event.reason.as_deref().map(|cause| format!(": {}", plain(cause)));
            let what = format!("{}{}", plain(&event.action), cause.unwrap_or_default());
            [when(audit.at, now), what, plain(&event.principal)]
        }),
    );
    if skipped > 0 {
        let _ = writeln!(page, "  {skipped} earlier events: pass --full to see them");
    }
    page
}

fn head(task: &TaskSummary, now: u64) -> String {
    let view = &task.view;
    let mut lines: Vec<[String; 2]> = Vec::new();
    let mut say = |name: &str, text: String| lines.push([name.to_owned(), text]);
    say("task", plain(view.id.as_str()));
    say("tool", plain(&view.tool));
    let why = match view.outcome.as_ref().or(task.kept.as_ref()) {
        Some(TaskOutcome::Error(error)) => format!(": {} ({})", plain(&error.message), error.code),
        _ => String::new(),
    };
    say("state", format!("{}{why}", state(task)));
    say("caller", plain(&task.principal));
    say("created", when(view.created_at, now));
    say("changed", when(view.updated_at, now));
    if let Some(ttl) = view.ttl {
        let over = match view.phase {
            Phase::Ended => "deleted",
            Phase::Quarantined => "fails",
            _ => "expires",
        };
        say(over, when(view.created_at.saturating_add(ttl), now));
    }
    if let Some(due) = task.due_at {
        say("due", when(due, now));
    }
    if let Some(asked) = view.cancel_requested {
        say("cancelled", when(asked, now));
    }
    let owner = task.owner.as_ref().map_or("none", |owner| owner.as_str());
    let lost = match task.crash_count {
        0 => String::new(),
        crashes => format!(", {crashes} crashes in a row"),
    };
    say("worker", format!("{} (claimed {} times{lost})", plain(owner), task.epoch));
    if let Some(message) = &view.status_message {
        say("message", plain(message));
    }
    if let Some(progress) = &view.progress {
        say("progress", plain(progress.get()));
    }
    say("era", plain(&view.origin));
    let width = lines.iter().map(|[name, _]| name.len()).max().unwrap_or_default();
    lines.iter().fold(String::new(), |mut text, [name, value]| {
        let _ = writeln!(text, "{name:width$}  {value}");
        text
    })
}

fn line(key: &str, entry: &JournalEntry, value: impl Fn(&str) -> String) -> [String; 3] {
    let Line { kind, value: raw, text, .. } = Line::of(key, entry);
    let shown = match (raw, text) {
        (Some(raw), _) => value(raw.get()),
        (None, Some(text)) => value(&text),
        (None, None) if kind == "secret" => "(not shown)".to_owned(),
        (None, None) => String::new(),
    };
    [plain(key), kind.to_owned(), shown]
}

/// Appends a section with rows, if there are any.
fn section(page: &mut String, name: &str, rows: impl Iterator<Item = [String; 3]>) {
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n{name}");
    // The columns need no headers.
    for line in table(["", "", ""], &rows).lines().skip(1) {
        let _ = writeln!(page, "  {line}");
    }
}
