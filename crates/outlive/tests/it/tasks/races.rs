//! Two things that happen to a task at once: one comes first, and both sides learn which.
//!
//! Each test puts the two into an order by stopping one of them at the store, and then into the
//! other order.

mod answering; // two answers; an answer and the task that has gone on
mod cancelling; // cancelling against the end, an answer, a second time
mod expiring; // the end of a task's time, and what comes at the same moment
mod owning; // two workers, two sessions, two calls for one task
