//! Opens and probes PostgreSQL stores by URL.

use std::sync::Arc;

use super::{PeopleStore, PostgresOptions, PostgresStore, StoreError, StoreProbe, postgres};

/// Connects to the database of a URL.
pub(super) async fn open(url: &str) -> Result<Arc<dyn PeopleStore>, StoreError> {
    let (url, options) = options(url);
    Ok(Arc::new(PostgresStore::connect_with(&url, options).await?))
}

/// Reads the state of a database without changing it.
pub(super) async fn probe(url: &str) -> Result<StoreProbe, StoreError> {
    let (url, options) = options(url);
    postgres::probe(&url, options).await
}

/// Splits a URL into the URL for the driver and our own options.
fn options(url: &str) -> (String, PostgresOptions) {
    let (url, schema) = split_schema(url);
    let options = PostgresOptions::new();
    match schema {
        Some(schema) => (url, options.with_schema(schema)),
        None => (url, options),
    }
}

/// Removes our own parameter from a URL, because the driver rejects unknown parameters.
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
    fn url_with_schema_splits_schema_from_driver_url() {
        for (url, driver, schema) in [
            ("postgres://db/x", "postgres://db/x", None),
            ("postgres://db/x?schema=a", "postgres://db/x", Some("a")),
            ("postgres://db/x?a=1&schema=b&c=2", "postgres://db/x?a=1&c=2", Some("b")),
        ] {
            assert_eq!(split_schema(url), (driver.to_owned(), schema));
        }
    }
}
