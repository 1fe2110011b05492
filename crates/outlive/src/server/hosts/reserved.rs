//! Names of the tools that a server adds for clients.

/// Name of the fallback tool that waits for a task and returns its result.
pub(crate) const TASK_RESULT: &str = "task_result";

/// Name of the fallback tool that cancels a task.
pub(crate) const TASK_CANCEL: &str = "task_cancel";

/// Name of the fallback tool that answers an input request.
pub(crate) const TASK_ANSWER: &str = "task_answer";

/// Returns whether a name is that of a fallback tool.
pub(crate) fn is_fallback(name: &str) -> bool {
    [TASK_RESULT, TASK_CANCEL, TASK_ANSWER].contains(&name)
}

/// Names that a server with [`Hosts`](crate::server::hosts::Hosts) reserves for its own tools. They
/// are the same on every server, so that a model recognizes them.
pub const RESERVED_TOOL_NAMES: &[&str] =
    &[TASK_RESULT, TASK_CANCEL, TASK_ANSWER, "find_tools", "call_tool", "upstream_problems"];
