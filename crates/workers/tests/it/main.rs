//! Tests of tool workers with real processes: a Python script with the bare protocol.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod calls; // steps, input requests, timers, segments, results
mod conversation_player; // plays a recorded conversation
mod conversations; // the recorded conversations of workers/protocol
mod hostile; // processes that break the protocol
mod killed; // processes that are killed, frozen, or exit
mod reload; // new code, changed tools
mod spoken; // a process whose lines a test writes and reads
mod starting; // starts that fail, the environment, the end
mod support; // a server with a tool worker, and a raw client
