//! Opens a store by its URL.

use std::{path::PathBuf, sync::Arc};

use super::{
    MemoryStore, OperatorStore, PeopleStore, Store, StoreError, open_postgres, open_sqlite,
};

/// Opens the store of a URL: `memory:`, `sqlite:path/to/file` or `postgres://…`. A PostgreSQL URL
/// may select a schema with `?schema=name`.
///
/// # Errors
///
/// Returns [`StoreError::Unavailable`] if the URL is invalid or the store cannot be opened; the
/// message names the remedy. Returns [`StoreError::Incompatible`] if this version cannot read the
/// store.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let store: Arc<dyn Store> = open_people(url).await?;
    Ok(store)
}

/// Opens the store of a URL for an operator. Applies pending migrations like [`open`]; call
/// [`probe`](super::probe) first to avoid them.
///
/// # Errors
///
/// Returns the same errors as [`open`].
pub async fn open_operator(url: &str) -> Result<Arc<dyn OperatorStore>, StoreError> {
    let store: Arc<dyn OperatorStore> = open_people(url).await?;
    Ok(store)
}

/// Opens the store of a URL for a server with approvals, a console or notifications.
///
/// # Errors
///
/// Returns the same errors as [`open`].
pub async fn open_people(url: &str) -> Result<Arc<dyn PeopleStore>, StoreError> {
    match Place::of(url)? {
        Place::Memory => Ok(Arc::new(MemoryStore::new())),
        Place::Sqlite(path) => open_sqlite::open(path).await,
        Place::Postgres => open_postgres::open(url).await,
    }
}

/// Location of a store.
pub(super) enum Place {
    Memory,
    Sqlite(PathBuf),
    Postgres,
}

impl Place {
    /// Parses the URL of a store.
    pub(super) fn of(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| Err(StoreError::Unavailable(why.to_owned()));
        match url.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("sqlite", path)) => {
                // Both `sqlite:file` and `sqlite://file` are common.
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() {
                    return wrong("`sqlite:` has no path; write `sqlite:path/to/tasks.db`");
                }
                Ok(Self::Sqlite(path.into()))
            }
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres),
            _ => wrong(
                "invalid store URL; write `memory:`, `sqlite:path/to/file` or `postgres://user@host/database`",
            ),
        }
    }
}
