//! Used request states, for a server without a store.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::server::time::{SKEW, millis};

/// Request states that were presented, for tools that accept each of them once.
#[derive(Debug, Default)]
pub(crate) struct UsedRequestStates(Mutex<HashMap<String, u64>>);

impl UsedRequestStates {
    /// Records a request state. Returns `false` if it was presented before.
    pub(crate) fn first_use(&self, jti: &str, expires: u64, now: u64) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() % SWEEP == SWEEP - 1 {
            // Expired request states are rejected anyway, so they can be deleted here.
            used.retain(|_, expires| now <= expires.saturating_add(2 * millis(SKEW)));
        }
        used.insert(jti.to_owned(), expires).is_none()
    }
}

/// Number of recorded request states between two sweeps.
const SWEEP: usize = 1_024;
