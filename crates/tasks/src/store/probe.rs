//! Looks at a store without touching it: whether it is there, and whether its tables are up to date.

use std::time::Duration;

use super::{
    error::StoreError,
    open::Place,
    open_postgres, open_sqlite,
    store_probe::{StoreKind, StoreProbe},
};
use crate::time::wall_clock;

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
        Place::Sqlite(path) => open_sqlite::probe(path).await,
        Place::Postgres => open_postgres::probe(url).await,
    }
}
