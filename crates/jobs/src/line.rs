//! A line of output, and the position of a reader.

use serde::{Deserialize, Serialize};

/// Longest line in bytes. A longer line is read in pieces of this length.
pub const MAX_LINE: usize = 64 << 10;

/// Line of output, or a piece of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Printed bytes without the line end. They need not be UTF-8.
    pub bytes: Vec<u8>,
    /// Whether the line ends here. If not, the next one continues it, because the line is longer than
    /// [`MAX_LINE`](super::MAX_LINE), an input request stands inside it, or the output ends without a line end.
    pub ended: bool,
}

/// Position of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Number of lines that were read.
    pub line: u64,
    /// Number of bytes that were read.
    pub offset: u64,
}
