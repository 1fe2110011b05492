//! Clock of the store: the clock of the database, which all replicas share.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use crate::store::UnixMillis;

/// Offset that a test has added, in milliseconds.
#[derive(Debug, Default)]
pub(super) struct Shift(AtomicI64);

impl Shift {
    pub(super) fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, span: Duration) {
        self.0.fetch_add(millis(span), Ordering::Relaxed);
    }
}

/// A time that is never reached, yet small enough that sums fit into a column.
const FOREVER: i64 = i64::MAX / 8;

pub(super) fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).map_or(FOREVER, |millis| millis.min(FOREVER))
}

pub(super) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

pub(super) fn to_column(number: u64) -> i64 {
    i64::try_from(number).map_or(FOREVER, |number| number.min(FOREVER))
}

/// Stored numbers are never negative.
pub(super) fn from_column(number: i64) -> UnixMillis {
    u64::try_from(number).unwrap_or_default()
}
