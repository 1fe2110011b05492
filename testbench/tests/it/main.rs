//! Servers as processes of their own: real pipes, real signals.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over a `json!` where they write it")]

mod asking; // one handler that asks, on every wire and over several processes
mod folder; // what processes share
mod killed; // what another process makes of the tasks of one that was killed
mod process; // starting, reaching and ending them
mod stdio; // standard input and output, and the end of both
mod streams; // content that goes on growing elsewhere

// The clients made of bytes that the tests of the crate itself use.
#[path = "../../../crates/outlive/tests/it/support/mod.rs"]
#[allow(dead_code, reason = "these tests need some of it")]
mod support;
