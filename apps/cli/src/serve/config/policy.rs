//! The policy of a tool: the keys that every kind of tool has.

use std::time::Duration;

use outlive::server::{
    Tool,
    hosts::{AnswerBy, Repeat},
    tasks::TaskPolicy,
};

use serde_json::json;

use super::{
    approve::ApproveConfig,
    argument::Argument,
    asked::Asked,
    reader::{At, Problem, Read, Result, Section, Value},
    scopes::scopes,
    tags::{self, TagTemplate},
    units::{Bytes, Span, in_words},
};

/// Policy of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolPolicy {
    pub(crate) task: TaskMode,
    pub(crate) timeout: Duration,
    pub(crate) on_crash: OnCrash,
    pub(crate) max_attempts: u32,
    pub(crate) scopes: Vec<String>,
    pub(crate) always_listed: bool,
    /// Policy for repeated calls; `None` for the one of `[hosts]`.
    repeat: Option<Repeat>,
    /// Bytes of a result that is delivered uncut; `None` for the limit of `[results]`.
    max_inline: Option<usize>,
    /// Ways to answer input requests; `None` for those of `[hosts]`.
    pub(crate) answers: Option<Vec<AnswerBy>>,
    /// Rule for the approval of calls; `None` for that of `[approvals]`.
    pub(crate) approve: Option<ApproveConfig>,
    pub(crate) tags: Vec<TagTemplate>,
}

/// Policy for turning calls into tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskMode {
    Never,
    Auto { after: Duration },
    Always,
}

/// Policy for a command that was lost while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnCrash {
    Fail,
    RunAgain,
}

/// A way to answer input requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer(pub(super) AnswerBy);

impl Read for Answer {
    fn read(value: Value<'_>) -> Result<Self> {
        let unfit = value.unfit("\"link\" or \"tool\"");
        match String::read(value).as_deref() {
            Ok("link") => Ok(Self(AnswerBy::Link)),
            Ok("tool") => Ok(Self(AnswerBy::Tool)),
            _ => Err(unfit),
        }
    }

    fn schema() -> serde_json::Value {
        json!({"enum": ["link", "tool"]})
    }
}

/// Hints of a tool that its policy depends on.
#[derive(Clone, Copy)]
pub(super) struct Hints {
    /// Whether the tool is read-only or idempotent, so that it can be rerun.
    pub(super) repeatable: bool,
    pub(super) destructive: bool,
}

/// Defaults. docs/outlive-toml.md lists them.
const TIMEOUT: Duration = Duration::from_secs(3_600);
const TASK_AFTER: Duration = Duration::from_secs(2);
const MAX_ATTEMPTS: u32 = 3;

impl ToolPolicy {
    /// Reads the policy from the section of a tool, and reports mistakes.
    pub(super) fn read(
        section: &mut Section<'_>,
        hints: Hints,
        arguments: &[Argument],
        asked: &mut Asked,
    ) -> Result<Self> {
        let (task, timeout) = task(section)?;
        let (on_crash, max_attempts) = on_crash(section, hints.repeatable)?;
        let repeat = repeat(section);
        Ok(Self {
            task,
            timeout,
            on_crash,
            max_attempts,
            scopes: scopes(section)?,
            always_listed: section.read("always_listed")?.unwrap_or(false),
            repeat,
            max_inline: section
                .read("max_inline")?
                .map(|Bytes(bytes)| usize::try_from(bytes).unwrap_or(usize::MAX)),
            answers: answers(section, hints.destructive)?,
            approve: ApproveConfig::read(section, "approve", Some(arguments), asked)?,
            tags: tags::read(section, arguments)?,
        })
    }

    /// Sets the policy of a tool that is being built.
    pub(crate) fn apply(&self, tool: Tool) -> Tool {
        let mut tool = tool.scopes(&self.scopes);
        if self.always_listed {
            tool = tool.always_listed();
        }
        if let Some(repeat) = self.repeat {
            tool = tool.repeat(repeat);
        }
        if let Some(bytes) = self.max_inline {
            tool = tool.max_inline(bytes);
        }
        if let Some(answers) = &self.answers {
            tool = tool.answers(answers.iter().copied());
        }
        if let Some(approve) = &self.approve {
            tool = tool.approve(approve.rule());
        }
        match self.task {
            TaskMode::Never => tool,
            TaskMode::Auto { after } => tool.task(TaskPolicy::Auto { after }),
            TaskMode::Always => tool.task(TaskPolicy::Always),
        }
    }
}

/// Reads the task policy and the timeout of the command.
fn task(section: &mut Section<'_>) -> Result<(TaskMode, Duration)> {
    #[derive(Clone, Copy)]
    enum Mode {
        Never,
        Auto,
        Always,
    }
    let after: Option<At<Span>> = section.read("task_after")?;
    let limit = section.read("timeout")?.map_or(TIMEOUT, |Span(span)| span);
    let words = [("never", Mode::Never), ("auto", Mode::Auto), ("always", Mode::Always)];
    let mode = section.choice("task", &words).map_or(Mode::Auto, |chosen| chosen.value);
    match (mode, &after) {
        (Mode::Auto, Some(At { value: Span(after), line })) if *after > limit => {
            let (after, limit) = (in_words(*after), in_words(limit));
            let what = format!("`task_after` is {after}, but `timeout` is only {limit}");
            section
                .report(Problem::at(*line, what).remedy("set `task_after` to at most `timeout`"));
        }
        (Mode::Never | Mode::Always, Some(At { line, .. })) => {
            let what = "`task_after` has no effect: it requires `task = \"auto\"`";
            section
                .report(Problem::at(*line, what).remedy("remove `task_after` or `task`").warning());
        }
        _ => {}
    }
    let after = after.map_or(TASK_AFTER, |At { value: Span(span), .. }| span);
    let mode = match mode {
        Mode::Never => TaskMode::Never,
        Mode::Auto => TaskMode::Auto { after },
        Mode::Always => TaskMode::Always,
    };
    Ok((mode, limit))
}

/// Reads the policy for a lost command, and the number of attempts.
fn on_crash(section: &mut Section<'_>, repeatable: bool) -> Result<(OnCrash, u32)> {
    let words = [("fail", OnCrash::Fail), ("rerun", OnCrash::RunAgain)];
    let otherwise = if repeatable { OnCrash::RunAgain } else { OnCrash::Fail };
    let on_crash = section.choice("on_crash", &words).map_or(otherwise, |chosen| chosen.value);
    let attempts: Option<At<u32>> = section.read("max_attempts")?;
    if let (OnCrash::Fail, Some(At { value: 2.., line })) = (on_crash, &attempts) {
        let what = "`max_attempts` applies only to commands that are rerun, and this one is not";
        let remedy = "set on_crash = \"rerun\", or remove `max_attempts`";
        section.report(Problem::at(*line, what).remedy(remedy));
    }
    Ok((on_crash, attempts.map_or(MAX_ATTEMPTS, |attempts| attempts.value)))
}

/// Reads the policy for repeated calls.
pub(super) fn repeat(section: &mut Section<'_>) -> Option<Repeat> {
    let words = [("join", Repeat::Join), ("new", Repeat::New)];
    section.choice("repeat", &words).map(|chosen| chosen.value)
}

/// Reads the ways to answer input requests. A person must decide about a destructive tool, and
/// both ways are visible to the model.
fn answers(section: &mut Section<'_>, destructive: bool) -> Result<Option<Vec<AnswerBy>>> {
    let answers: Option<At<Vec<Answer>>> = section.read("answers")?;
    let Some(At { value, line }) = answers else { return Ok(None) };
    if destructive && !value.is_empty() {
        let what =
            "the tool is `destructive`, so `answers` must be empty: only a person may answer";
        section.report(Problem::at(line, what).remedy("remove `answers`, or set answers = []"));
    }
    Ok(Some(value.into_iter().map(|Answer(answer)| answer).collect()))
}
