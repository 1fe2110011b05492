//! Tests of the stores and the engine.

#![allow(clippy::unwrap_used, reason = "this crate contains only tests and their helpers")]

mod alternating; // two handles on one store, like those of two processes
mod bridge_histories; // random histories of bridged calls against the memory store
mod bridged; // bridged tasks in an engine
mod broken; // stores that break one promise each, which the contract must detect
mod broken_people; // the same for lists, votes, deliveries and metrics
mod decision_histories; // random histories of approval requests against the memory store
mod durations; // durations of steps and tags in an engine
mod fairness; // fairness between callers in an engine
mod memory; // the memory store
mod model; // random histories against a reference model
mod opening; // opening and probing stores by URL
#[cfg(feature = "postgres")]
mod postgres; // the PostgreSQL store
mod spans; // tracing spans of runs and commits
mod sqlite; // the SQLite store
