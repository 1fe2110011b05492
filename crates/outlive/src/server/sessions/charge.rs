//! The byte quota and the keys of session entries.

use outlive_protocol::Principal;
use outlive_tasks::store::Charge;
use sha2::{Digest, Sha256};

use crate::hex::hex;

/// Byte quotas: per caller, and of all anonymous callers together.
#[derive(Clone, Copy)]
pub(crate) struct MaxBytes {
    pub(crate) per_caller: u64,
    pub(crate) anonymous: u64,
}

impl MaxBytes {
    /// Returns the principal and quota that an entry is charged to, and the name of the limit.
    pub(crate) fn charge(self, principal: &Principal) -> (Charge, &'static str) {
        let (max_bytes, limit) = match principal.is_anonymous() {
            true => (self.anonymous, "max_anonymous_store"),
            false => (self.per_caller, "max_store_bytes_per_caller"),
        };
        (Charge::new(principal.key().to_owned(), max_bytes), limit)
    }
}

/// Returns the hash of a session ID. The store never contains the ID itself.
pub(crate) fn digest(id: &str) -> String {
    hex(&Sha256::digest(id))
}
