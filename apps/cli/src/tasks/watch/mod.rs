//! `outlive tasks watch`: a live table of calls. On a terminal it is drawn over itself, elsewhere each
//! change is a line. What a task has printed before it asks stands before its question.

mod command;
mod news;
mod unreachable;
mod view;

pub(crate) use command::{Args, run};
