//! The program `outlive`, and what runs below it, as real processes.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

#[cfg(unix)]
mod job; // commands that outlive the server: real commands, real signals
