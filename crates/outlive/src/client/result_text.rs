//! The text of a tool's result.

use outlive_wire::CallToolResult;

/// Returns all texts of a result, joined by line ends.
pub fn result_text(result: &CallToolResult) -> String {
    result.texts().collect::<Vec<_>>().join("\n")
}
