//! Sustained load: many connections and a fixed request rate of a stated mix, for minutes.
//!
//! The server is a process on its own core with tasks in a SQLite file. Requests are sent when they
//! are due, regardless of earlier ones: a stalled server does not get fewer requests, and the time
//! of a request counts from when it was due. Every response is checked. The memory of the first and
//! the last minute must be equal.

mod mix;
mod run;

pub use run::run;
