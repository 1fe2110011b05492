//! Figures anyone can repeat: what a call costs here, beside a bare server and beside a peer.
//!
//! `cargo xtask bench` takes all of them. The machine is never quiet, so servers are measured
//! against each other and not against the clock: all of them run at once, each gets a short slice
//! of load in turn, and a figure is the median of ratios of slices that lie side by side.
//!
//! - [`messages`], [`echo`]: the calls that are measured, byte for byte, and the server that answers
//!   them, from a crate of their own, `counts`.
//! - `serve`: the servers, each a process of its own.
//! - `load`: what asks them, and checks every answer.
//! - `client`: our client, as it is measured beside that of a peer.
//! - `peers`: servers of others, from `peers.toml`.
//! - `bare`, `place`: commits without a store around them, and where tasks are kept.
//! - [`soak`]: load that is held, and what memory does meanwhile.
//! - `slices`, `suite`, `report`: the rounds, what is measured in them, and how it is told.

pub use outlive_counts::{echo, messages};

// Cores are pinned and processes are watched with what Linux has for it.
#[cfg(target_os = "linux")]
mod bare;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
pub mod cli;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod peers;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod slices;
#[cfg(target_os = "linux")]
pub mod soak;
#[cfg(target_os = "linux")]
mod suite;
