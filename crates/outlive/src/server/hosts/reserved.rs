//! Names of the tools that a server adds for clients.

/// Names that a server with [`Hosts`](crate::server::hosts::Hosts) reserves for its own tools. They
/// are the same on every server, so that a model recognizes them.
pub const RESERVED_TOOL_NAMES: &[&str] =
    &["task_result", "task_cancel", "task_answer", "find_tools", "call_tool", "upstream_problems"];
