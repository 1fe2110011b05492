//! A line of output, and the position of a reader.

use serde::{Deserialize, Serialize};

/// Maximum bytes of a line. A longer line is read in pieces of this length.
pub const MAX_LINE: usize = 64 << 10;

/// Line of output, or a piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Printed bytes without the line break. They may be invalid UTF-8.
    pub bytes: Vec<u8>,
    /// Whether the line ends here. Otherwise the next one continues it: the line exceeds
    /// [`MAX_LINE`](super::MAX_LINE), contains an input request, or is the last output.
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
