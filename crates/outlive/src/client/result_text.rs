//! Text of a tool result.

use outlive_wire::CallToolResult;

/// Returns all texts of a result, joined by newlines.
pub fn result_text(result: &CallToolResult) -> String {
    result.texts().collect::<Vec<_>>().join("\n")
}
