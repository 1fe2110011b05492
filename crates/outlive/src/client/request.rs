//! Requests with their options, lists page by page, and streams of partial results.

pub use super::{
    attempt::Progress,
    lists::{ListItem, Paginated},
    request_builder::{Complete, GetPrompt, RawRequest, ReadResource, RequestBuilder, RequestKind},
    result_text::result_text,
    segment::Segment,
    stream::{StreamTool, ToolStream},
    tool_arguments::check_arguments,
    tools::{StartTool, ToolCall},
};
