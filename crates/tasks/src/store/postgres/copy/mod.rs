//! Fast creation of tasks: `COPY` into the task table, in consecutive batches.
//!
//! A copy costs the database half as much as an insert of the same rows. It is limited to tasks
//! without a journal and without an idempotency key. If a task exceeds a quota or already exists,
//! the copy creates nothing, and `create_tasks` then determines the outcome of each task.
//!
//! The entry point is `WriteConnection::copy`.

mod pipeline;
mod transaction;
