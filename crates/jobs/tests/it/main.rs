//! Tests of commands with supervisors. Every command is real, usually a shell script.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod children; // processes that must not outlive their server
mod ending; // ending commands and all their processes
mod inputs; // standard input, input requests and their responses
mod killed; // servers and supervisors that are killed
mod output; // output: large, long lines, binary, standard error
mod pipes; // processes that survive their gateway
mod starting; // commands start at most once
mod steps; // steps of commands, which the server records
mod support; // a data folder and helpers
