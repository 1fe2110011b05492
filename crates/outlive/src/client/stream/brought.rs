//! What the sources of a stream bring.

use outlive_wire::CallToolResult;

/// Item that a source of segments returned.
pub(crate) enum Brought {
    /// Something was given to the tracker, or nothing happened.
    More,
    /// The whole result.
    Whole(Box<CallToolResult>),
    /// The end: nothing is missing, and this is what else the result has.
    End(Box<CallToolResult>),
}
