//! The messages of the protocol: one JSON object per line.
//!
//! - `from_worker`: messages of a tool worker. `from_server`: messages of the server.
//! - `declared`: the declared entry of a tool. `start`: the lines that start a call or a cleanup.

pub(crate) mod declared;
pub(crate) mod from_server;
pub(crate) mod from_worker;
pub(crate) mod start;
