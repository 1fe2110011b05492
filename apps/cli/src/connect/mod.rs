//! `outlive connect`: connects a host to a server of `outlive serve`.
//!
//! `host` has the hosts and the formats of their entries, `config_file` adds an entry to a file,
//! and `command` is the command.

mod command;
mod config_file;
mod host;

pub(crate) use command::{Args, run};
