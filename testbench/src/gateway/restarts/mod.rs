//! `cargo xtask gateway-restarts`: kills of upstream processes, kills of the gateway, and changes of
//! the file, under load.
//!
//! Every call must end with its own result or an error that names its upstream. Nothing may be left:
//! no process, socket or folder, and no memory.

mod changes;
mod command;
mod gateway_kills;
mod kills;
mod left;
mod load;

pub(crate) use command::run;
