//! The bytes that the store has for the hostile caller, read beside the server.

use std::sync::Arc;

use anyhow::{Context, Result};
use outlive::server::Principal;
use outlive::store::{self, Store};
use tokio::runtime::{Builder, Runtime};

/// Reads the stored bytes of one principal.
pub(super) struct StoredBytes {
    runtime: Runtime,
    store: Arc<dyn Store>,
    principal: Principal,
    /// Bytes before the attacks.
    before: u64,
}

impl StoredBytes {
    /// Opens the store of a running server. All anonymous callers are one principal.
    pub(super) fn open(url: &str, name: Option<&str>) -> Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let store = runtime.block_on(store::open(url)).context("could not open the store")?;
        let principal = name.map_or(Principal::ANONYMOUS, Principal::named);
        let mut stored = Self { runtime, store, principal, before: 0 };
        stored.before = stored.all()?;
        Ok(stored)
    }

    /// Returns the bytes that were stored since this value was opened.
    pub(super) fn since_open(&self) -> Result<u64> {
        Ok(self.all()?.saturating_sub(self.before))
    }

    fn all(&self) -> Result<u64> {
        Ok(self.runtime.block_on(self.store.stored_bytes(self.principal.key()))?)
    }
}
