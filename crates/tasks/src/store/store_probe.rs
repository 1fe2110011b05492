//! [`StoreProbe`]: result of a probe of a store.

use std::time::Duration;

use super::id::UnixMillis;

/// Product, version and state of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreProbe {
    /// Kind of the store.
    pub product: StoreKind,
    /// Version of the database product.
    pub version: String,
    /// Schema version of the store; `None` if it has no tables yet.
    pub tables: Option<usize>,
    /// Schema version that this program uses.
    pub known: usize,
    /// Time of the store's clock, in the middle of the probe.
    pub time: UnixMillis,
    /// Duration of one round trip.
    pub round_trip: Duration,
}

/// Kind of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreKind {
    /// Memory of this process.
    Memory,
    /// A SQLite file.
    Sqlite,
    /// A PostgreSQL database.
    Postgres,
}

impl StoreKind {
    /// Returns the name in traces.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}
