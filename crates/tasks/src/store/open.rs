//! Stores by URL, for programs that are told where to keep their tasks.

use std::sync::Arc;

use super::{MemoryStore, SqliteStore, Store, StoreError};

/// Opens the store that a URL names: `memory:`, `sqlite:path/to/file` or `postgres://…`.
///
/// # Errors
///
/// [`StoreError::Unavailable`] if it cannot be opened, or there is no such store; the message says
/// what to do. [`StoreError::Unreadable`] if it holds what this version cannot read.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let wrong = |why: &str| Err(StoreError::Unavailable(why.to_owned()));
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(MemoryStore::new())),
        Some(("sqlite", path)) => {
            // Both ways to write it are seen: `sqlite:file` and `sqlite://file`.
            let path = path.strip_prefix("//").unwrap_or(path).to_owned();
            if path.is_empty() {
                return wrong("`sqlite:` names no file; write `sqlite:path/to/tasks.db`");
            }
            // Opening a file blocks, and may wait for others.
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(path)).await;
            let opened =
                opened.map_err(|_| StoreError::Unavailable("opening it panicked".to_owned()))?;
            Ok(Arc::new(opened?))
        }
        Some(("postgres" | "postgresql", _)) => postgres(url).await,
        _ => {
            wrong("a store is `memory:`, `sqlite:path/to/file` or `postgres://user@host/database`")
        }
    }
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Arc::new(super::PostgresStore::connect(url).await?))
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "the other one is")]
async fn postgres(_url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let why = "this program was built without PostgreSQL; build it with the feature `postgres`";
    Err(StoreError::Unavailable(why.to_owned()))
}
