//! `cargo xtask gateway-isolation`: principals behind one gateway, whose upstreams give all of them
//! the same IDs, states, URIs and sessions.
//!
//! Three principals call at once, and try the states, tasks and sessions of each other. Every value
//! of a principal has its mark. A mark in the bytes that another principal receives fails the
//! command.

mod command;
mod conversation;
mod operations;
mod principal;

pub(crate) use command::run;
