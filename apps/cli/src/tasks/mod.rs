//! `outlive tasks`: goes on with calls that are saved, and with tasks of servers.
//!
//! - `list`: what is saved, or what a server lists. `look`: asks servers how far saved calls are.
//! - `resume`: takes a call up again, to see it, answer it, or wait for its result. `cancel`: stops some.
//! - `operate`: the same for the tasks of all callers, over the store of a server.
//! - `taken`: which call that is, and how to get at it. `page`, `table`: calls for people.
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
use which::{Which, WithResult, no_task_named};
