//! Two concurrent operations on a task: one wins, and both sides learn which.
//!
//! Each test forces one order by holding an operation at the store, and then the other order.

mod answering; // two input responses; an input response and a task that continued
mod cancelling; // cancellation against the end, an input response, and a second cancellation
mod expiring; // expiry against other operations
mod owning; // two workers, two sessions or two calls for one task
