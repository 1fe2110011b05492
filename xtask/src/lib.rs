//! Shared parts of the project commands: arguments, processes, and required programs.
//!
//! `testbench` uses it too.

pub mod args;
pub mod packages;
pub mod process;
pub mod tools;
