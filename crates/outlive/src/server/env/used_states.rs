//! Which rounds have been presented, where no store remembers it.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use crate::server::time::{SKEW, millis};

/// The rounds that have been presented, for tools whose rounds may be used once only.
#[derive(Debug, Default)]
pub(crate) struct UsedRequestStates(Mutex<HashMap<String, u64>>);

impl UsedRequestStates {
    /// Notes a round; `false` if it has been presented before.
    pub(crate) fn first_use(&self, jti: &str, expires: u64, now: u64) -> bool {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() % SWEEP == SWEEP - 1 {
            // What has expired is refused anyway.
            used.retain(|_, expires| now <= expires.saturating_add(2 * millis(SKEW)));
        }
        used.insert(jti.to_owned(), expires).is_none()
    }
}

/// After how many rounds those that have expired are forgotten.
const SWEEP: usize = 1_024;
