//! `cargo xtask conformance --through-gateway`: the official server suite against our server, once
//! directly and once behind `outlive serve`.
//!
//! The server is the only upstream, with `prefix = ""`, so its tools keep their names. A scenario
//! that passes directly must pass through the gateway, with as many checks.

mod command;
mod compare;
mod upstream;

pub(crate) use command::run;
