//! The keys of a policy, which tools of commands, of upstreams and of tool workers share.

use std::time::Duration;

use outlive::server::hosts::{AnswerBy, Repeat};
use serde_json::json;

use super::{
    approve::{ApproveConfig, RuleArguments},
    argument::Argument,
    asked::Asked,
    reader::{At, Problem, Read, Result, Section, Value},
    scopes::optional_scopes,
    tags::{self, Tags},
    units::{Bytes, Span, in_words},
};

/// Place of a policy, which decides which keys exist.
#[derive(Clone, Copy)]
pub(super) enum PolicyOf<'a> {
    /// A tool that runs a command, with these arguments.
    Command(&'a [Argument]),
    /// All tools of an upstream.
    Upstream,
    /// One tool of an upstream with this policy.
    UpstreamTool(&'a PolicyKeys),
    /// One tool of a tool worker.
    WorkerTool,
}

/// Keys of a policy. `None` stands for an absent key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PolicyKeys {
    mode: Option<Mode>,
    after: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) on_crash: Option<OnCrash>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) scopes: Option<Vec<String>>,
    pub(crate) always_listed: Option<bool>,
    pub(crate) repeat: Option<Repeat>,
    pub(crate) max_inline: Option<usize>,
    pub(crate) answers: Option<Vec<AnswerBy>>,
    pub(crate) approve: Option<ApproveConfig>,
    pub(crate) tags: Tags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Never,
    Auto,
    Always,
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

/// Hints of a tool that its policy depends on.
#[derive(Clone, Copy)]
pub(super) struct Hints {
    /// Whether the tool is read-only or idempotent, so that it can be rerun.
    pub(super) repeatable: bool,
    pub(super) destructive: bool,
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

/// Defaults. docs/outlive-toml.md lists them.
pub(super) const TIMEOUT: Duration = Duration::from_secs(3_600);
pub(super) const TASK_AFTER: Duration = Duration::from_secs(2);

impl PolicyKeys {
    /// Reads the keys, and reports mistakes.
    pub(super) fn read(
        section: &mut Section<'_>,
        of: PolicyOf<'_>,
        hints: Hints,
        asked: &mut Asked,
    ) -> Result<Self> {
        let mut keys = Self::default();
        keys.read_task(section, of)?;
        keys.read_on_crash(section, of, hints.repeatable)?;
        keys.scopes = optional_scopes(section)?;
        keys.always_listed = section.read("always_listed")?;
        let (rule, arguments) = match of {
            PolicyOf::Upstream => return Ok(keys),
            PolicyOf::Command(arguments) => (RuleArguments::Known(arguments), Some(arguments)),
            PolicyOf::UpstreamTool(_) | PolicyOf::WorkerTool => (RuleArguments::OfUpstream, None),
        };
        keys.repeat = repeat(section);
        keys.max_inline = section
            .read("max_inline")?
            .map(|Bytes(bytes)| usize::try_from(bytes).unwrap_or(usize::MAX));
        keys.answers = answers(section, hints.destructive)?;
        keys.approve = ApproveConfig::read(section, "approve", rule, asked)?;
        keys.tags = tags::read(section, arguments)?;
        Ok(keys)
    }

    /// Returns which calls become tasks. Returns `None` if no key says so.
    pub(crate) fn task_mode(&self) -> Option<TaskMode> {
        match (self.mode, self.after) {
            (None, None) => None,
            (Some(Mode::Never), _) => Some(TaskMode::Never),
            (Some(Mode::Always), _) => Some(TaskMode::Always),
            (Some(Mode::Auto) | None, after) => {
                Some(TaskMode::Auto { after: after.unwrap_or(TASK_AFTER) })
            }
        }
    }

    /// Reads the task policy and the timeout. Absent keys of a tool are those of its upstream.
    fn read_task(&mut self, section: &mut Section<'_>, of: PolicyOf<'_>) -> Result<()> {
        let base = match of {
            PolicyOf::UpstreamTool(base) => base,
            PolicyOf::Command(_) | PolicyOf::Upstream | PolicyOf::WorkerTool => &Self::default(),
        };
        let after: Option<At<Span>> = section.read("task_after")?;
        self.timeout = section.read("timeout")?.map(|Span(span)| span);
        let words = [("never", Mode::Never), ("auto", Mode::Auto), ("always", Mode::Always)];
        self.mode = section.choice("task", &words).map(|chosen| chosen.value);
        let limit = self.timeout.or(base.timeout).unwrap_or(TIMEOUT);
        match (self.mode.or(base.mode), &after) {
            (Some(Mode::Never | Mode::Always), Some(At { line, .. })) => {
                let what = "`task_after` has no effect: it requires `task = \"auto\"`";
                let problem = Problem::at(*line, what).remedy("remove `task_after` or `task`");
                section.report(problem.warning());
            }
            (_, Some(At { value: Span(after), line })) if *after > limit => {
                let (after, limit) = (in_words(*after), in_words(limit));
                let what = format!("`task_after` is {after}, but `timeout` is only {limit}");
                let remedy = "set `task_after` to at most `timeout`";
                section.report(Problem::at(*line, what).remedy(remedy));
            }
            _ => {}
        }
        self.after = after.map(|At { value: Span(span), .. }| span);
        if self.mode.is_some() || self.after.is_some() {
            self.mode = self.mode.or(base.mode);
            self.after = self.after.or(base.after);
        }
        Ok(())
    }

    /// Reads the policy for a lost call, and the number of attempts.
    fn read_on_crash(
        &mut self,
        section: &mut Section<'_>,
        of: PolicyOf<'_>,
        repeatable: bool,
    ) -> Result<()> {
        let words = [("fail", OnCrash::Fail), ("rerun", OnCrash::RunAgain)];
        self.on_crash = section.choice("on_crash", &words).map(|chosen| chosen.value);
        let attempts: Option<At<u32>> = section.read("max_attempts")?;
        let (reruns, of_what) = match of {
            PolicyOf::Command(_) => (repeatable, "commands"),
            // The hints of the upstream or of the tool worker are not known here.
            PolicyOf::Upstream | PolicyOf::WorkerTool => (true, "calls"),
            PolicyOf::UpstreamTool(base) => (base.on_crash != Some(OnCrash::Fail), "calls"),
        };
        let reruns = self.on_crash.map_or(reruns, |on_crash| on_crash == OnCrash::RunAgain);
        if let (false, Some(At { value: 2.., line })) = (reruns, &attempts) {
            let what = format!(
                "`max_attempts` applies only to {of_what} that are rerun, and this one is not"
            );
            let remedy = "set on_crash = \"rerun\", or remove `max_attempts`";
            section.report(Problem::at(*line, what).remedy(remedy));
        }
        self.max_attempts = attempts.map(|attempts| attempts.value);
        Ok(())
    }
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
