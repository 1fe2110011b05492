//! `outlive call`: calls a tool, and waits until the call ends or the user detaches.
//!
//! - `server`: the server and the connection to it. `older`: the servers of the legacy era.
//! - `arguments`: the tool's arguments, from the command line.
//! - `run_call`: follows the call. `input` and `form` handle its input requests.
//! - `screen`, `progress_bar`, `show`, `link`: output. `saved_calls` and `origin`: calls on disk.

pub(crate) mod arguments;
mod command;
pub(crate) mod form;
pub(crate) mod input;
pub(crate) mod link;
mod older;
mod origin;
pub(crate) mod outcome;
pub(crate) mod private_file;
mod progress_bar;
pub(crate) mod run_call;
pub(crate) mod saved_calls;
pub(crate) mod saved_task;
pub(crate) mod screen;
pub(crate) mod server;
pub(crate) mod show;
mod span;

pub(crate) use command::{Args, PATIENCE, run};
pub(crate) use span::span;
