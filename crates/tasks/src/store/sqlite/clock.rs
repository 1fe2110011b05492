//! Clock of the store: the system clock, which all processes that share the file use.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::store::UnixMillis;

#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Offset that a test has added, in milliseconds.
    shifted: AtomicU64,
}

impl Clock {
    pub(super) fn now(&self) -> i64 {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        millis(wall) + to_column(self.shifted.load(Ordering::Relaxed))
    }

    pub(super) fn shift(&self, span: Duration) {
        self.shifted.fetch_add(from_column(millis(span)), Ordering::Relaxed);
    }
}

/// A time that is never reached, yet small enough that sums fit into a column.
const FOREVER: i64 = i64::MAX / 8;

pub(super) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).map_or(FOREVER, |millis| millis.min(FOREVER))
}

pub(super) fn to_column(number: u64) -> i64 {
    i64::try_from(number).map_or(FOREVER, |number| number.min(FOREVER))
}

/// Stored numbers are never negative.
pub(super) fn from_column(number: i64) -> UnixMillis {
    u64::try_from(number).unwrap_or_default()
}
