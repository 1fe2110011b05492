//! Opens and probes SQLite files by path.

use std::{path::PathBuf, sync::Arc};

use tokio::task::{JoinError, spawn_blocking};

use super::{PeopleStore, SqliteStore, StoreError, StoreProbe, sqlite};

/// Opens a SQLite file.
pub(super) async fn open(path: PathBuf) -> Result<Arc<dyn PeopleStore>, StoreError> {
    // Opening a file blocks, and may wait for other processes.
    let opened = spawn_blocking(move || SqliteStore::open(path)).await;
    Ok(Arc::new(opened.map_err(panicked)??))
}

/// Reads the state of a file without changing it.
pub(super) async fn probe(path: PathBuf) -> Result<StoreProbe, StoreError> {
    spawn_blocking(move || sqlite::probe(&path)).await.map_err(panicked)?
}

fn panicked(_: JoinError) -> StoreError {
    StoreError::Unavailable("opening the SQLite file panicked".to_owned())
}
