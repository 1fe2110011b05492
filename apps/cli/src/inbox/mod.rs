//! `outlive inbox`: the open input requests of a person, on the command line.
//!
//! - `command`: arguments. `desk`: the console. `requests`: reads input requests. `page`: shows them.
//! - `decide`: approves, denies and answers. `link`: creates answer links.

mod command;
mod decide;
mod desk;
mod link;
mod page;
mod requests;

pub(crate) use command::{Args, run};
