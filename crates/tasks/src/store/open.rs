//! Stores by URL, for programs that are told where to keep their tasks.

use std::{path::PathBuf, sync::Arc};

use super::{MemoryStore, OperatorStore, Store, StoreError, open_postgres, open_sqlite};

/// Opens the store that a URL names: `memory:`, `sqlite:path/to/file` or `postgres://…`, there with
/// `?schema=name` for a schema other than the default one.
///
/// # Errors
///
/// [`StoreError::Unavailable`] if it cannot be opened, or there is no such store; the message says
/// what to do. [`StoreError::Incompatible`] if it holds what this version cannot read.
pub async fn open(url: &str) -> Result<Arc<dyn Store>, StoreError> {
    let store: Arc<dyn Store> = open_operator(url).await?;
    Ok(store)
}

/// Opens the store that a URL names, for an operator. Its tables are brought up to date like for
/// anybody else: whoever must not do that looks at them first, with [`probe`](super::probe).
///
/// # Errors
///
/// Like [`open`].
pub async fn open_operator(url: &str) -> Result<Arc<dyn OperatorStore>, StoreError> {
    match Place::of(url)? {
        Place::Memory => Ok(Arc::new(MemoryStore::new())),
        Place::Sqlite(path) => open_sqlite::open(path).await,
        Place::Postgres => open_postgres::open(url).await,
    }
}

/// Where a store is.
pub(super) enum Place {
    Memory,
    Sqlite(PathBuf),
    Postgres,
}

impl Place {
    /// What a URL names.
    pub(super) fn of(url: &str) -> Result<Self, StoreError> {
        let wrong = |why: &str| Err(StoreError::Unavailable(why.to_owned()));
        match url.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("sqlite", path)) => {
                // Both ways to write it are seen: `sqlite:file` and `sqlite://file`.
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() {
                    return wrong("`sqlite:` names no file; write `sqlite:path/to/tasks.db`");
                }
                Ok(Self::Sqlite(path.into()))
            }
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres),
            _ => wrong(
                "a store is `memory:`, `sqlite:path/to/file` or `postgres://user@host/database`",
            ),
        }
    }
}
