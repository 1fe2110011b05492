//! Counts the calls of a tool and logs one line per call.
//!
//! Each registered tool has a meter, so clients cannot increase the number of meters.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use outlive_protocol::{Call, CallEnd, CallWatcher, MethodResult, Outcome};

use crate::server::{
    audit_name::name_in_audit,
    histogram::{Count, Histogram, HistogramCell, head, histogram},
};

/// Meter of one tool.
#[derive(Debug)]
pub(crate) struct ToolMeter {
    name: Box<str>,
    /// Name of the upstream that executes the tool, for the log.
    upstream: Option<Box<str>>,
    counts: Arc<CallCounts>,
}

/// Counters for the calls of one tool since its registration.
#[derive(Debug, Default)]
struct CallCounts {
    completed: Count,
    failed: Count,
    cancelled: Count,
    input_required: Count,
    became_tasks: Count,
    tasks_completed: Count,
    tasks_failed: Count,
    took: HistogramCell,
}

impl ToolMeter {
    pub(crate) fn new(name: &str, upstream: Option<Box<str>>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), upstream, counts: Arc::default() })
    }

    /// Returns a meter of the same tool with the counters of another meter.
    pub(crate) fn counted_by(&self, other: &Self) -> Arc<Self> {
        let (name, upstream) = (self.name.clone(), self.upstream.clone());
        Arc::new(Self { name, upstream, counts: Arc::clone(&other.counts) })
    }

    /// Watches a call of the tool.
    pub(crate) fn watch(self: &Arc<Self>, call: &Call, now: Instant) {
        call.watch(Arc::clone(self) as Arc<dyn CallWatcher>, now);
    }

    pub(crate) fn read(&self) -> ToolMetrics {
        let counts = &self.counts;
        ToolMetrics {
            name: self.name.to_string(),
            completed: counts.completed.get(),
            failed: counts.failed.get(),
            cancelled: counts.cancelled.get(),
            input_required: counts.input_required.get(),
            became_tasks: counts.became_tasks.get(),
            tasks_completed: counts.tasks_completed.get(),
            tasks_failed: counts.tasks_failed.get(),
            duration: counts.took.read(),
        }
    }
}

impl CallWatcher for ToolMeter {
    fn ended(&self, call: &Call, how: CallEnd<'_>, took: Duration) {
        let (ending, counts) = (Ending::of(how), &self.counts);
        let is_task = matches!(how, CallEnd::Task { .. } | CallEnd::TaskCancelled { .. });
        if is_task {
            match ending {
                Ending::Completed => counts.tasks_completed.add(1),
                // The server counts cancelled tasks; see `TaskMetrics`.
                Ending::Cancelled => {}
                _ => counts.tasks_failed.add(1),
            }
        } else {
            counts.took.add(took);
            match ending {
                Ending::Completed => counts.completed.add(1),
                Ending::Failed => counts.failed.add(1),
                Ending::Cancelled => counts.cancelled.add(1),
                Ending::InputRequired => counts.input_required.add(1),
                Ending::Task => counts.became_tasks.add(1),
            }
        }
        if tracing::enabled!(target: CALL, tracing::Level::INFO) {
            self.log(call, how, ending, took);
        }
    }
}

/// Log target for the line per call.
const CALL: &str = "outlive::call";

impl ToolMeter {
    /// Logs one line. Marked cold, because most applications do not enable this log target.
    #[cold]
    fn log(&self, call: &Call, how: CallEnd<'_>, ending: Ending, took: Duration) {
        let principal = call.principal().key();
        let is_task = matches!(how, CallEnd::Task { .. } | CallEnd::TaskCancelled { .. });
        tracing::info!(
            target: CALL,
            principal,
            tool = &*self.name,
            upstream = self.upstream.as_deref(),
            outcome = ending.name(),
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            exit_code = call.exit_code(),
            task_id = task_id(how).map(|id| name_in_audit(principal, id)),
            "{}",
            if is_task { "task ended" } else { "call ended" },
        );
    }
}

/// Logs a call of a tool that is unknown to the caller. The name comes from the client, so it is
/// truncated.
pub(crate) fn unknown_tool(call: &Call, name: &str) {
    tracing::info!(
        target: "outlive::call",
        principal = call.principal().key(),
        tool = name.chars().take(64).collect::<String>(),
        outcome = "failed",
        "unknown tool",
    );
}

/// Outcome of a call in logs and metrics.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Completed,
    Failed,
    Cancelled,
    InputRequired,
    Task,
}

impl Ending {
    fn of(how: CallEnd<'_>) -> Self {
        let result = match how {
            CallEnd::Cancelled | CallEnd::TaskCancelled { .. } => return Self::Cancelled,
            CallEnd::Answered(result) | CallEnd::Task { result, .. } => result,
        };
        match result {
            Ok(Outcome::InputRequired(_)) => Self::InputRequired,
            Ok(Outcome::Task(_)) => Self::Task,
            Ok(Outcome::Complete(MethodResult::Tool(result))) if result.is_error == Some(true) => {
                Self::Failed
            }
            Ok(Outcome::Complete(MethodResult::Relayed(result, _))) if result.is_error() => {
                Self::Failed
            }
            Ok(Outcome::Complete(MethodResult::TaskResult(result, _)))
                if result.is_error == Some(true) =>
            {
                Self::Failed
            }
            Ok(_) => Self::Completed,
            Err(_) => Self::Failed,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::InputRequired => "input_required",
            Self::Task => "task",
        }
    }
}

/// Returns the ID of the call's task.
fn task_id(how: CallEnd<'_>) -> Option<&str> {
    match how {
        CallEnd::Cancelled => None,
        CallEnd::Task { task_id, .. } | CallEnd::TaskCancelled { task_id } => Some(task_id),
        CallEnd::Answered(Ok(Outcome::Task(task))) => Some(&task.id),
        CallEnd::Answered(Ok(Outcome::Complete(MethodResult::TaskResult(_, id)))) => Some(id),
        CallEnd::Answered(Ok(Outcome::Complete(MethodResult::Rest(rest)))) => Some(&rest.id),
        CallEnd::Answered(_) => None,
    }
}

/// Call metrics of one tool since its registration.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolMetrics {
    /// Name of the tool.
    pub name: String,
    /// Calls that returned a result without an error.
    pub completed: u64,
    /// Calls that returned a protocol error or a tool error.
    pub failed: u64,
    /// Calls that were cancelled, or whose client disconnected.
    pub cancelled: u64,
    /// Calls that returned input requests.
    pub input_required: u64,
    /// Calls that returned a task.
    pub became_tasks: u64,
    /// Tasks that completed in this process without an error.
    pub tasks_completed: u64,
    /// Tasks that ended in this process with a protocol error or a tool error.
    pub tasks_failed: u64,
    /// Time from the start of a call to its response.
    pub duration: Histogram,
}

/// Writes the metrics of all tools in the Prometheus text format.
pub(crate) fn write(f: &mut fmt::Formatter<'_>, tools: &[ToolMetrics]) -> fmt::Result {
    if tools.is_empty() {
        return Ok(());
    }
    let name = "outlive_tool_calls_total";
    head(f, name, "counter", "Tool calls, by outcome.")?;
    for tool in tools {
        for (outcome, count) in [
            ("completed", tool.completed),
            ("failed", tool.failed),
            ("cancelled", tool.cancelled),
            ("input_required", tool.input_required),
            ("task", tool.became_tasks),
        ] {
            let tool = Label(&tool.name);
            writeln!(f, "{name}{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}")?;
        }
    }
    let name = "outlive_tool_tasks_ended_total";
    head(f, name, "counter", "Tasks that ended in this process, by tool and outcome.")?;
    for tool in tools {
        for (outcome, count) in [("completed", tool.tasks_completed), ("failed", tool.tasks_failed)]
        {
            let tool = Label(&tool.name);
            writeln!(f, "{name}{{tool=\"{tool}\",outcome=\"{outcome}\"}} {count}")?;
        }
    }
    let name = "outlive_tool_call_seconds";
    head(f, name, "histogram", "Time from the start of a call to its response.")?;
    for tool in tools {
        let label = format!("tool=\"{}\"", Label(&tool.name));
        histogram(f, name, &label, &tool.duration)?;
    }
    Ok(())
}

/// Escapes a label value.
struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                char => write!(f, "{char}")?,
            }
        }
        Ok(())
    }
}
