//! `cargo xtask interop`: our client at servers of others, and clients of others at our server.
//!
//! Real processes on real pipes and sockets. Every feature that does not work needs an excuse
//! (`interop/excuses.rs`) that quotes what the peer says; one that has become untrue is an error too.

mod command;
mod excuses;
mod legs;
mod table;

pub(crate) use command::run;
