//! The measurements. Each suite is a file with a function `measure` and an entry in one list.

mod auth;
mod client;
mod cold;
mod gateway;
mod http;
mod lifecycle;
mod memory;
mod payload;
mod plan;
mod progress;
mod stdio;
mod suites;
mod tasks;
mod tools;

pub(crate) use plan::Plan;
pub(crate) use suites::{SUITES, run};
