//! Partial results as a stream of segments that ends with the complete result.
//!
//! On 2025-11-25 segments arrive in responses that share one request ID. Since 2026-07-28 they
//! arrive with `tasks/get` and through a subscription (extension `dev.outlive/task-partials`).
//! Without either, the stream returns the content of the result at its end.

mod brought;
mod legacy;
mod modern;
mod tool_stream;

pub use tool_stream::{StreamTool, ToolStream};
