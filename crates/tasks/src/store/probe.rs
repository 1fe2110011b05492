//! Looks at a store without touching it: whether it is there, and whether its tables are up to date.

use std::time::Duration;

use super::{
    StoreError, UnixMillis,
    open::{Place, panicked},
    sqlite,
};
use crate::time::wall_clock;

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
    /// How long one question to it and its answer took.
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

/// Looks at the store that a URL names. Nothing is made or changed.
///
/// # Errors
///
/// [`StoreError::Unavailable`] if it cannot be reached, or there is no such store; the message says
/// what to do. [`StoreError::Incompatible`] if it is no store of this program.
pub async fn probe(url: &str) -> Result<StoreProbe, StoreError> {
    match Place::of(url)? {
        Place::Memory => Ok(StoreProbe {
            product: StoreKind::Memory,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            tables: Some(0),
            known: 0,
            time: wall_clock(),
            round_trip: Duration::ZERO,
        }),
        Place::Sqlite(path) => {
            tokio::task::spawn_blocking(move || sqlite::probe(&path)).await.map_err(panicked)?
        }
        Place::Postgres => postgres(url).await,
    }
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<StoreProbe, StoreError> {
    let (url, options) = super::open::postgres_options(url);
    super::postgres::probe(&url, options).await
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "the other one is")]
async fn postgres(_url: &str) -> Result<StoreProbe, StoreError> {
    Err(super::open::not_built())
}
