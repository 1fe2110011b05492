//! One task: why it waits, which work is done, and how to help.
//!
//! `page` has the page and its actions, `timeline` the lanes of the timeline and their table,
//! `journal` the rows of the journal, `tabs` the part below the timeline.

mod journal;
mod page;
mod tabs;
mod timeline;

pub(crate) use page::{TaskData, render};
pub(crate) use tabs::{Tab, TabName, cursor_before};
