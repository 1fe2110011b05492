//! `outlive tasks watch`: a live table of calls.
//!
//! On a terminal the table is redrawn in place; otherwise each change is a line. The output of a
//! task is shown before its input request.

mod command;
mod news;
mod unreachable;
mod view;

pub(crate) use command::{Args, run};
