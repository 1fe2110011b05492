//! Catalogs in the store, so that tools stay listed and tasks find their tool after a restart.

use std::{fmt, sync::Arc, time::Duration};

use outlive::store::{Charge, KeyValueStore};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::to_raw_value;

use super::definitions::Definitions;
use crate::{digest::digest_of, upstream::CatalogKey};

/// Time for which an unused catalog is stored.
const TTL: Duration = Duration::from_secs(2_592_000);

/// Bytes of one stored catalog. A longer one is read again after a restart.
const MAX_BYTES: usize = 4 << 20;

/// Prefix of the keys.
const PREFIX: &str = "gateway";

/// Catalogs and pins in the store of the server.
#[derive(Clone, Default)]
pub(crate) struct StoredCatalogs {
    store: Option<Arc<dyn KeyValueStore>>,
}

impl fmt::Debug for StoredCatalogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredCatalogs").field("exists", &self.store.is_some()).finish()
    }
}

impl StoredCatalogs {
    pub(crate) fn new(store: Option<Arc<dyn KeyValueStore>>) -> Self {
        Self { store }
    }

    pub(crate) async fn catalog(&self, upstream: &str, key: &CatalogKey) -> Option<Definitions> {
        self.read(&catalog_key(upstream, key)).await
    }

    pub(crate) async fn put_catalog(
        &self,
        upstream: &str,
        key: &CatalogKey,
        definitions: &Definitions,
    ) {
        // The catalog of a principal counts in its bytes.
        let charge = key.principal.as_deref().map(|owner| Charge::new(owner, u64::MAX));
        self.put(&catalog_key(upstream, key), definitions, charge.as_ref()).await;
    }

    /// Reads a value. A failing store has the effect of an empty one.
    pub(super) async fn read<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let store = self.store.as_ref()?;
        match store.get_value(key).await {
            Ok(value) => serde_json::from_str(value?.get()).ok(),
            Err(error) => {
                tracing::warn!(%error, "cannot read a catalog from the store");
                None
            }
        }
    }

    pub(super) async fn write(&self, key: &str, value: &impl Serialize) {
        self.put(key, value, None).await;
    }

    async fn put(&self, key: &str, value: &impl Serialize, charge: Option<&Charge>) {
        let Some(store) = &self.store else { return };
        let Ok(value) = to_raw_value(value) else { return };
        if value.get().len() > MAX_BYTES {
            return;
        }
        if let Err(error) = store.put(key, value, TTL, charge).await {
            tracing::warn!(%error, "cannot write a catalog to the store");
        }
    }
}

fn catalog_key(upstream: &str, key: &CatalogKey) -> String {
    let class = key.class.bits();
    match &key.principal {
        None => format!("{PREFIX}/catalog/{upstream}/{class:02x}"),
        Some(principal) => {
            // A hash, so that the keys of the store have no names.
            let owner = digest_of([&**principal]);
            format!("{PREFIX}/catalog/{upstream}/{class:02x}/{owner}")
        }
    }
}

/// Returns the key of the pins of an upstream.
pub(super) fn pins_key(upstream: &str) -> String {
    format!("{PREFIX}/pins/{upstream}")
}
