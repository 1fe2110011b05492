//! Reads the state of a store without changing it.

use std::time::Duration;

use super::{
    error::StoreError,
    open::Place,
    open_postgres, open_sqlite,
    store_probe::{StoreKind, StoreProbe},
};
use crate::time::wall_clock;

/// Reads the state of the store of a URL. Does not create or change the store.
///
/// # Errors
///
/// Returns [`StoreError::Unavailable`] if the URL is invalid or the store cannot be reached; the
/// message names the remedy. Returns [`StoreError::Incompatible`] if the data was not created by
/// this program.
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
