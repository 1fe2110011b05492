//! `outlive tasks`: resumes saved calls, and operates on tasks of servers.
//!
//! - `list`: lists saved calls or the tasks of a server. `look`: polls servers for the status of
//!   saved calls.
//! - `resume`: shows a call, answers it, or waits for its result. `cancel`: cancels calls.
//! - `operate`: the same for tasks of all callers, through the store of a server.
//! - `target`: the call that a command names. `page`, `table`: text output.
//! - `watch`: a live table.

mod cancel;
mod command;
mod describe;
mod end;
mod list;
mod look;
mod operate;
mod page;
mod remove;
mod resume;
mod snapshot;
mod stores;
mod table;
mod target;
mod watch;
mod which;

pub(crate) use command::{Args, run};
pub(crate) use operate::ask_one;
use which::{Which, WithResult, no_task_named};
