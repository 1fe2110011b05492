//! The journal: what a run records and what the next run replays.

mod blocks; // partial results
mod drift; // nondeterminism and changed handlers
mod keys; // keys and scopes
mod kit; // the test kit for authors
mod sizes; // journal size, and secrets
mod steps; // steps, idempotency keys and retries
mod time; // timers and timeouts
