//! The fast way to create tasks: `COPY` into the task table, in batches, one after the other.
//!
//! A copy costs the database half of an insert with as many rows. It takes only tasks without a journal
//! and without an idempotency key. If one of them exceeds a quota or exists already, nothing is created, and
//! the function `create_tasks` says which.
//!
//! The entry is `WriteConnection::copy`.

mod pipeline;
mod transaction;
