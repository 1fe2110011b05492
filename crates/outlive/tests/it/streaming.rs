//! Immediate and streaming responses of tasks, and partial results, in both eras.
//!
//! Comments with `S-T` and a number name the scenarios of the proposal and our additions. Each
//! scenario runs on a pipe and over HTTP unless its comment says otherwise.

mod ends; // completion, failure, cancellation, expiry
mod modes; // negotiation of response modes
mod partials; // the extension of 2026-07-28 and its documentation
mod progress; // progress of tasks
mod pushed; // several responses with one ID
mod resume; // resumption by sequence number
pub(crate) mod stage; // tools, and a client for both transports
mod stored; // stored segments: numbers, limits, crashes
