//! What the commands of the project share: arguments, processes, and programs that have to be installed.
//!
//! `testbench` uses it, too: it has the runs that need the product.

pub mod args;
pub mod packages;
pub mod process;
pub mod tools;
