//! Checks whether a caller may create a task or store more bytes.

use std::time::Duration;

use outlive_protocol::{Call, Principal, ProtocolError};
use outlive_tasks::{
    engine::Allowance,
    store::{Charge, NewTask, StoreError},
};

use crate::server::{
    caller_key::caller_key,
    env::{address_quotas::Over, task_backend::TaskBackend, task_error::unavailable},
};

/// Retry delay for a caller over its byte quota: entries may have expired by then.
const RETRY: Duration = Duration::from_secs(60);

impl TaskBackend {
    /// Reserves quota for a new task of an anonymous caller, counted by network address. Other
    /// principals pass; the store checks their quota. A caller that does not create the task must
    /// call [`TaskBackend::not_created`].
    pub(crate) async fn admit(&self, call: &Call, task: &NewTask) -> Result<(), ProtocolError> {
        match self.admits(call, task) {
            Ok(()) => return Ok(()),
            Err(over @ Over::Bytes) => return Err(over.into()),
            Err(Over::Tasks) => {}
        }
        let principal = call.principal().key();
        for task in self.quotas.to_look_at(&caller_key(call)) {
            let view = self.engine().get(principal, &task).await;
            let view = view.map_err(|error| unavailable(&error))?;
            if view.is_none_or(|view| view.outcome.is_some()) {
                self.quotas.leave(&task);
            }
        }
        self.admits(call, task).map_err(ProtocolError::from)
    }

    /// Reserves quota without waiting: does not check whether counted tasks have ended on other
    /// replicas.
    pub(crate) fn admits(&self, call: &Call, task: &NewTask) -> Result<(), Over> {
        if call.principal().is_anonymous() {
            let quotas = (self.config.quota, self.config.anonymous);
            self.quotas.enter(&caller_key(call), task, quotas, self.config.store_per_caller)?;
        }
        self.creating(task);
        Ok(())
    }

    /// Returns the maximum number of open tasks of the call's principal.
    pub(crate) fn quota(&self, call: &Call) -> usize {
        match call.principal().is_anonymous() {
            true => self.config.anonymous,
            false => self.config.quota,
        }
    }

    /// Returns the maximum number of bytes that a principal may store now.
    pub(crate) fn allowance(&self, principal: &str) -> Allowance {
        let is_anonymous = principal == Principal::ANONYMOUS.key();
        let (max_bytes, limit) = match (self.is_full(), is_anonymous) {
            (true, _) => (0, "max_store"),
            (false, true) => (self.config.anonymous_store, "max_anonymous_store"),
            (false, false) => (self.config.store_per_caller, "max_store_bytes_per_caller"),
        };
        Allowance { max_bytes, limit, evicts: !is_anonymous }
    }

    /// Returns the principal and the byte limit that a key-value entry is charged to.
    pub(crate) fn charge(&self, principal: &Principal) -> Charge {
        let max_bytes = self.allowance(principal.key()).max_bytes;
        Charge::new(principal.key().to_owned(), max_bytes)
    }

    /// Returns the error for a caller over its byte quota, or over the quota of all callers.
    pub(crate) fn over_bytes(&self, principal: &Principal) -> ProtocolError {
        let limit = self.allowance(principal.key()).limit;
        ProtocolError::OverLimit { limit: limit.into(), retry_after: RETRY }
    }

    /// Converts an error of the store into the error for the client.
    pub(crate) fn refused(&self, call: &Call, error: &StoreError) -> ProtocolError {
        match error {
            StoreError::BytesExceeded => self.over_bytes(call.principal()),
            _ => unavailable(error),
        }
    }
}
