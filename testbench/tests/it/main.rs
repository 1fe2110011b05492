//! Servers as separate processes: real pipes and real signals.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over a `json!` where they write it")]

mod asking; // one handler with input requests, on every transport and over several processes
mod folder; // a shared folder
mod killed; // tasks of a killed process
mod process; // start and end of processes
mod stdio; // stdio, and the end of input
mod streams; // partial results over several processes

// The raw clients of the tests of `crates/outlive`.
#[path = "../../../crates/outlive/tests/it/support/mod.rs"]
#[allow(dead_code, reason = "these tests need some of it")]
mod support;
