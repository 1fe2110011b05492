//! Commands under supervisors. Every command here is a real one, mostly a line for the shell.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod ending; // how a command is ended, and that nothing is left of it
mod inputs; // standard input, input requests and their responses
mod killed; // servers and supervisors that are killed
mod output; // what is printed: much, long, binary, on standard error
mod starting; // once and only once, or not at all
mod support; // a data folder and helpers
