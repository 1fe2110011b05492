//! Opens and probes PostgreSQL stores by URL.

use std::sync::Arc;

use super::{OperatorStore, PostgresOptions, PostgresStore, StoreError, StoreProbe, postgres};

/// Connects to a database.
pub(super) async fn open(url: &str) -> Result<Arc<dyn OperatorStore>, StoreError> {
    let (url, options) = options(url);
    Ok(Arc::new(PostgresStore::connect_with(&url, options).await?))
}

/// Reads the state of a database without changing it.
pub(super) async fn probe(url: &str) -> Result<StoreProbe, StoreError> {
    let (url, options) = options(url);
    postgres::probe(&url, options).await
}

/// The URL for the driver, and what else it says.
fn options(url: &str) -> (String, PostgresOptions) {
    let (url, schema) = split_schema(url);
    let options = PostgresOptions::new();
    match schema {
        Some(schema) => (url, options.with_schema(schema)),
        None => (url, options),
    }
}

/// Takes our own parameter out of a URL: the driver refuses those that it does not know.
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

#[cfg(test)]
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
