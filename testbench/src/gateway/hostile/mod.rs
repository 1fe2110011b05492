//! `cargo xtask hostile-upstreams`: hostile MCP servers behind the gateway.
//!
//! Every case has a server of `bin/hostile-upstream.rs`, beside an honest server whose calls must not
//! be affected. A case passes if its call ends in time with its own result or an error that names the
//! upstream, the memory of the gateway stays bounded, and the status names what happened.

mod attack;
mod cases;
mod command;
mod honest;

pub(crate) use command::run;
