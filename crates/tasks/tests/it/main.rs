//! The stores, put to their contract.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod alternating; // two handles on one store, as two processes have
mod broken; // stores that break one promise each: the contract must see it
mod fairness; // many tasks of one caller beside one of another, in an engine
mod memory; // the store that forgets
mod model; // random histories against a small model of what may be seen
mod opening; // stores by their URL
#[cfg(feature = "postgres")]
mod postgres; // the store that replicas share
mod spans; // what traces show of runs and commits
mod sqlite; // the store in a file
