//! Items from the sources of a stream.

use outlive_wire::CallToolResult;

/// Item from a source of segments.
pub(crate) enum Brought {
    /// The tracker may have new segments.
    More,
    /// The complete result.
    Whole(Box<CallToolResult>),
    /// The end of the stream: all segments arrived, and this is the rest of the result.
    End(Box<CallToolResult>),
}
