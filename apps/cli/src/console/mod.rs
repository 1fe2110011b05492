//! `outlive console`: opens the console of a server, or a console of a store without a server.
//!
//! - `address`: the console that a command means. `client`: requests to it.
//! - `command`: the console of a server. `of_store`: the console of a store. `show`: its address.

mod address;
mod client;
mod command;
mod of_store;
mod show;

pub(crate) use address::Place;
pub(crate) use client::ConsoleClient;
pub(crate) use command::{Args, run};
