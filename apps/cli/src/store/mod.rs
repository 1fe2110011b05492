//! `outlive store`: operator commands for a store. Servers may use the store at the same time.
//!
//! - `access`: selects and opens the store.
//! - `list`, `show`, `retry`, `purge`, `migrate`: the commands.
//! - `format`: tasks and times as text. `json`: tasks as JSON.

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
pub(crate) use command::{Args, run};
pub(crate) use format::{end_of, plain, rough, shortened, stamp, table, wall_clock};
pub(crate) use list::of_all as list;
use span::span;
