//! Catalogs in the store, so that tools stay listed and tasks find their tool after a restart.

use std::{fmt, sync::Arc, time::Duration};

use outlive::{client::relay::CapabilityClass, store::KeyValueStore};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::to_raw_value;

use super::definitions::Definitions;

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

    pub(crate) async fn catalog(
        &self,
        upstream: &str,
        class: CapabilityClass,
    ) -> Option<Definitions> {
        self.read(&catalog_key(upstream, class)).await
    }

    pub(crate) async fn put_catalog(
        &self,
        upstream: &str,
        class: CapabilityClass,
        definitions: &Definitions,
    ) {
        self.write(&catalog_key(upstream, class), definitions).await;
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
        let Some(store) = &self.store else { return };
        let Ok(value) = to_raw_value(value) else { return };
        if value.get().len() > MAX_BYTES {
            return;
        }
        if let Err(error) = store.put(key, value, TTL, None).await {
            tracing::warn!(%error, "cannot write a catalog to the store");
        }
    }
}

fn catalog_key(upstream: &str, class: CapabilityClass) -> String {
    format!("{PREFIX}/catalog/{upstream}/{:02x}", class.bits())
}

/// Returns the key of the pins of an upstream.
pub(super) fn pins_key(upstream: &str) -> String {
    format!("{PREFIX}/pins/{upstream}")
}
