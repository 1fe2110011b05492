//! `cargo xtask workers`: durable tools in Python and TypeScript under `outlive serve`.
//!
//! The tools (`tools/`) record their executions in a file. Processes are killed at every moment, and
//! the results and executions must be those of an undisturbed run. Other rows measure the cost of a
//! step, count the lines of tools, and test the packages that would be published. Every row has a
//! figure and a bar; a row that misses its bar fails the command.

mod bench;
mod command;
mod compared;
mod cost;
mod crowd;
mod fastmcp;
mod hostile;
mod interpreters;
mod kills;
mod language;
mod packages;
mod programs;
mod random;
mod site;
mod task;
mod tutorials;
mod types;

pub(crate) use command::run;
