//! `outlive store`: what operators do with a store, also while servers use it.
//!
//! - `access`: which store, and whether it may be touched. `list`, `show`, `retry`, `purge`,
//!   `migrate`: the commands. `words`: tasks and times for people. `json`: tasks for programs.

mod access;
mod command;
mod format;
mod json;
mod list;
mod migrate;
mod output;
mod purge;
mod retry;
mod show;
mod span;

pub(crate) use access::{Store, no_task, own_url, trouble, url_or_own, without_password};
pub(crate) use command::{Args, block_on, run};
pub(crate) use format::{end_of, plain, rough, stamp, wall_clock};
pub(crate) use list::of_all as list;
use span::span;
