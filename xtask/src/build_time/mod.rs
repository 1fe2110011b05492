//! `cargo xtask build-time`: the cost of a cold build of the program, and of hello world beside
//! rmcp's.
//!
//! Each build has a new target directory, which is deleted afterwards. Crates are downloaded
//! before. CPU seconds include all processes of cargo. They vary less than wall-clock time, which
//! depends on other load.

mod command;
mod report;
mod subject;

pub(crate) use self::command::run;
pub(crate) use self::subject::external;
