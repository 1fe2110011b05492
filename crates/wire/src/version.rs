//! The protocol versions, as dates. Their rules are data in `outlive-protocol`.

use std::{fmt, str::FromStr};

/// A protocol version. Versions compare by their dates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(&'static str);

impl Version {
    /// The first published version: `initialize`, HTTP+SSE.
    pub const V2024_11_05: Self = Self("2024-11-05");
    /// Streamable HTTP, batches, audio, annotations.
    pub const V2025_03_26: Self = Self("2025-03-26");
    /// Structured content, elicitation, resource links; no batches.
    pub const V2025_06_18: Self = Self("2025-06-18");
    /// Icons, resumable streams, experimental tasks.
    pub const V2025_11_25: Self = Self("2025-11-25");
    /// Stateless: no handshake, self-contained requests.
    pub const V2026_07_28: Self = Self("2026-07-28");

    /// Every published version, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// Creates a version that is not published yet, such as a draft.
    ///
    /// # Panics
    ///
    /// If the text is not a date (`2026-07-28`). In a constant this fails the build.
    pub const fn from_static(date: &'static str) -> Self {
        assert!(is_date(date.as_bytes()), "a protocol version is a date, such as `2026-07-28`");
        Self(date)
    }

    /// Returns the date of the version, as in messages.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Parses the date of a published version; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }
}

impl FromStr for Version {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        Self::parse(text).ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

/// The error for a text that is not a published protocol version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownVersion(String);

impl fmt::Display for UnknownVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Version::ALL.map(Version::as_str).join(", ");
        write!(f, "`{}` is not a protocol version; use one of {known}", self.0)
    }
}

impl std::error::Error for UnknownVersion {}

/// Returns whether a text has the format of a date, as in `2026-07-28`.
const fn is_date(text: &[u8]) -> bool {
    let mut at = 0;
    while at < text.len() {
        let fits = match at {
            4 | 7 => text[at] == b'-',
            _ => text[at].is_ascii_digit(),
        };
        if !fits {
            return false;
        }
        at += 1;
    }
    text.len() == 10
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
