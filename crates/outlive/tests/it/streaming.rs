//! Calls that are answered at once, or with what there is so far: what a task emits, on both wires.
//!
//! Tests that begin with `s_t` and a number are the scenarios of the proposal and our own additions
//! to them. Each runs on a pipe and over HTTP, unless it says otherwise.

mod ends; // completion, failure, cancellation, expiry
mod modes; // what is agreed on, and what is answered then
mod partials; // the extension of 2026-07-28, and its page
mod progress; // how far a task is, in words
mod pushed; // several responses with one id
mod resume; // the rest, by number
pub(crate) mod stage; // the tools, and a client on either wire
mod stored; // numbers, limits, crashes: what the engine makes of what is emitted
