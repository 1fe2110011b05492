//! What a probe finds out about a store.

use std::time::Duration;

use super::id::UnixMillis;

/// What a store is and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreProbe {
    /// What keeps the tasks.
    pub product: StoreKind,
    /// Its version.
    pub version: String,
    /// Which version its tables have; `None` if there are none yet.
    pub tables: Option<usize>,
    /// Which version of the tables this program uses.
    pub known: usize,
    /// Its time, in the middle of the look.
    pub time: UnixMillis,
    /// Duration of one round trip.
    pub round_trip: Duration,
}

/// What keeps tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreKind {
    /// This process.
    Memory,
    /// A file.
    Sqlite,
    /// A database.
    Postgres,
}

impl StoreKind {
    /// Returns the name that traces show.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}
