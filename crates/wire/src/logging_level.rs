//! The level of a log message.

use serde::{Deserialize, Serialize};

/// How grave a log message is, least first; the levels of syslog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "RFC 5424 has these eight and will have no other")]
pub enum LoggingLevel {
    /// For those who debug.
    Debug,
    /// As it should be.
    Info,
    /// As it should be, and worth knowing.
    Notice,
    /// Not yet wrong.
    Warning,
    /// Something failed.
    Error,
    /// A part is failing.
    Critical,
    /// Somebody must act now.
    Alert,
    /// Nothing works.
    Emergency,
}

impl LoggingLevel {
    /// Every level, least first.
    pub const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}
