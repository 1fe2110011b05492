//! `outlive call`: calls a tool of any server, and stays until it is over or the user leaves.
//!
//! - `server`: which server is meant, and how it is reached. `older`: which ones were met with a handshake.
//! - `arguments`, `schema`: what the words of the command line mean to the tool.
//! - `attend`: sits with the call. `desk` and `form` are its questions, `screen`, `bar` and `show` what
//!   the user sees, `link` how a URL is shown, `handles` and `origin` what is saved.

pub(crate) mod arguments;
mod command;
pub(crate) mod form;
pub(crate) mod input;
pub(crate) mod link;
mod older;
mod origin;
pub(crate) mod outcome;
mod private_file;
mod progress_bar;
pub(crate) mod run_call;
pub(crate) mod saved_calls;
pub(crate) mod saved_task;
pub(crate) mod screen;
pub(crate) mod server;
pub(crate) mod show;
mod span;

pub(crate) use command::{Args, PATIENCE, block_on, run};
pub(crate) use span::span;
