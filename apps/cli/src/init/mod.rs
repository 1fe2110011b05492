//! `outlive init`: writes an `outlive.toml` for a command of the user.

mod command;
mod new_tool;

pub(crate) use command::{Args, run};
