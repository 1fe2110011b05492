//! The policy of a tool that runs a command.

use std::time::Duration;

use outlive::server::{
    Tool,
    hosts::{AnswerBy, Repeat},
    tasks::TaskPolicy,
};

use super::{
    approve::ApproveConfig,
    argument::Argument,
    asked::Asked,
    policy_keys::{Hints, OnCrash, PolicyKeys, PolicyOf, TASK_AFTER, TIMEOUT, TaskMode},
    reader::{Result, Section},
    tags::Tags,
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
    pub(crate) tags: Tags,
}

/// Default. docs/outlive-toml.md has it.
const MAX_ATTEMPTS: u32 = 3;

impl ToolPolicy {
    /// Reads the policy from the section of a tool, and reports mistakes.
    pub(super) fn read(
        section: &mut Section<'_>,
        hints: Hints,
        arguments: &[Argument],
        asked: &mut Asked,
    ) -> Result<Self> {
        let keys = PolicyKeys::read(section, PolicyOf::Command(arguments), hints, asked)?;
        let otherwise = if hints.repeatable { OnCrash::RunAgain } else { OnCrash::Fail };
        Ok(Self {
            task: keys.task_mode().unwrap_or(TaskMode::Auto { after: TASK_AFTER }),
            timeout: keys.timeout.unwrap_or(TIMEOUT),
            on_crash: keys.on_crash.unwrap_or(otherwise),
            max_attempts: keys.max_attempts.unwrap_or(MAX_ATTEMPTS),
            scopes: keys.scopes.unwrap_or_default(),
            always_listed: keys.always_listed.unwrap_or(false),
            repeat: keys.repeat,
            max_inline: keys.max_inline,
            answers: keys.answers,
            approve: keys.approve,
            tags: keys.tags,
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
