//! The protocol versions of both sides.

/// A protocol version of a client or an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V24,
    V503,
    V506,
    V511,
    V26,
}

impl Version {
    pub(super) const ALL: [Self; 5] = [Self::V24, Self::V503, Self::V506, Self::V511, Self::V26];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V24 => "2024-11-05",
            Self::V503 => "2025-03-26",
            Self::V506 => "2025-06-18",
            Self::V511 => "2025-11-25",
            Self::V26 => "2026-07-28",
        }
    }

    /// Its place in [`Version::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }

    pub(super) fn is_modern(self) -> bool {
        self == Self::V26
    }
}
