//! Crashes at every store operation.
//!
//! A test holds a process at a fail point and drops its runtime. A second process over the same
//! store then gets the requests of a client.

mod answering; // input requests and input responses
mod creating; // creation of tasks
mod ending; // end and expiry of tasks
mod everywhere; // one scenario with a crash at each write
mod file; // the same with a SQLite store
mod outage; // an unavailable store
mod revisions; // handler revisions
mod running; // running tasks
