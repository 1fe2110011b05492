//! `cargo xtask interop`: our client with third-party servers, and third-party clients with our
//! server.
//!
//! It uses real processes on pipes and sockets. Every feature that fails needs an entry in
//! `interop/excuses.rs` that quotes the error. An entry that no longer applies is an error too.

mod command;
mod excuses;
mod gateway;
mod legs;
mod table;

pub(crate) use command::run;
