//! The revisions of the protocol. Nothing hangs on them here: what a revision means stands in the eras.

use std::fmt;

/// A revision of the Model Context Protocol, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Version {
    /// The first published revision: `initialize`, HTTP+SSE.
    V2024_11_05,
    /// Streamable HTTP, batches, audio, annotations.
    V2025_03_26,
    /// Structured content, elicitation, resource links; no batches.
    V2025_06_18,
    /// Icons, resumable streams, experimental tasks.
    V2025_11_25,
    /// Stateless: no handshake, everything in the request.
    V2026_07_28,
}

impl Version {
    /// Every revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// The date that names the revision on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Reads a date as it stands on the wire; `None` for one we do not know.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
