//! The text of a tool's result.

use outlive_wire::{CallToolResult, ContentBlock};

/// Returns all texts of a result, joined by line ends.
pub fn result_text(result: &CallToolResult) -> String {
    let texts: Vec<&str> = result
        .content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}
