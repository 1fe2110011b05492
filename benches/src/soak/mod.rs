//! Load that is held: many connections, so many requests a second of a stated mix, for minutes.
//!
//! The server is a process of its own, on a core of its own, and keeps tasks in a SQLite file. Requests
//! are sent when they are due, whatever became of the ones before: a server that stalls is not asked
//! less, and a request that had to wait for its connection has waited since it was due. Every answer is
//! checked. Memory of the first minute and of the last is told, and must be the same.

mod mix;
mod run;

pub use run::run;
