//! `outlive connect`: the configuration with which a host reaches a server of ours.
//!
//! `host` knows the hosts and the form of their entries, `config_file` adds an entry to a file, `command` is the command.

mod command;
mod config_file;
mod host;

pub(crate) use command::{Args, run};
