//! The journal: what a run records and what the next run replays.

mod keys; // keys and scopes
mod kit; // the test kit for authors
mod nondeterminism; // nondeterminism and changed handlers
mod segments; // partial results
mod sizes; // journal size, and secrets
mod steps; // steps, idempotency keys and retries
mod time; // timers and timeouts
