//! Stores by URL, for programs that are told where to keep their tasks.

use std::{path::PathBuf, sync::Arc};

use super::{MemoryStore, OperatorStore, SqliteStore, Store, StoreError};

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
        Place::Sqlite(path) => {
            // Opening a file blocks, and may wait for others.
            let opened = tokio::task::spawn_blocking(move || SqliteStore::open(path)).await;
            Ok(Arc::new(opened.map_err(panicked)??))
        }
        Place::Postgres => postgres(url).await,
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

pub(super) fn panicked(_: tokio::task::JoinError) -> StoreError {
    StoreError::Unavailable("opening it panicked".to_owned())
}

#[cfg(feature = "postgres")]
async fn postgres(url: &str) -> Result<Arc<dyn OperatorStore>, StoreError> {
    let (url, options) = postgres_options(url);
    Ok(Arc::new(super::PostgresStore::connect_with(&url, options).await?))
}

/// The URL for the driver, and what else it says.
#[cfg(feature = "postgres")]
pub(super) fn postgres_options(url: &str) -> (String, super::PostgresOptions) {
    let (url, schema) = split_schema(url);
    let options = super::PostgresOptions::new();
    match schema {
        Some(schema) => (url, options.with_schema(schema)),
        None => (url, options),
    }
}

/// Takes our own parameter out of a URL: the driver refuses those that it does not know.
#[cfg(feature = "postgres")]
fn split_schema(url: &str) -> (String, Option<&str>) {
    let Some((place, parameters)) = url.split_once('?') else { return (url.to_owned(), None) };
    let (mut schema, mut others) = (None, Vec::new());
    for parameter in parameters.split('&') {
        match parameter.strip_prefix("schema=") {
            Some(name) => schema = Some(name),
            None => others.push(parameter),
        }
    }
    match others.is_empty() {
        true => (place.to_owned(), schema),
        false => (format!("{place}?{}", others.join("&")), schema),
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use super::split_schema;

    #[test]
    fn the_schema_is_ours_and_the_rest_is_the_drivers() {
        for (url, driver, schema) in [
            ("postgres://db/x", "postgres://db/x", None),
            ("postgres://db/x?schema=a", "postgres://db/x", Some("a")),
            ("postgres://db/x?a=1&schema=b&c=2", "postgres://db/x?a=1&c=2", Some("b")),
        ] {
            assert_eq!(split_schema(url), (driver.to_owned(), schema));
        }
    }
}

#[cfg(not(feature = "postgres"))]
#[expect(clippy::unused_async, reason = "the other one is")]
async fn postgres(_url: &str) -> Result<Arc<dyn OperatorStore>, StoreError> {
    Err(not_built())
}

#[cfg(not(feature = "postgres"))]
pub(super) fn not_built() -> StoreError {
    let why = "this program was built without PostgreSQL; build it with the feature `postgres`";
    StoreError::Unavailable(why.to_owned())
}
