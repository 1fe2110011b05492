//! Partial results, as they come: a stream of segments, and the whole at its end.
//!
//! On 2025-11-25 segments come in responses that share one id, where both sides have agreed on it;
//! since 2026-07-28 beside `tasks/get` and through a subscription, with the extension
//! `dev.outlive/task-partials`. Without either the stream has what the result has, at its end.

mod brought;
mod legacy;
mod modern;
mod tool_stream;

pub use tool_stream::{StreamTool, ToolStream};
