//! Reproducible measurements: the cost of a call, beside a bare server and beside peers.
//!
//! `cargo xtask bench` runs all of them. A machine is never idle, so servers are compared with each
//! other and not with the clock. All servers run at the same time, each gets a short slice of load
//! in turn, and a figure is the median of the ratios of adjacent slices.
//!
//! - [`messages`], [`echo`], [`relayed`]: the measured calls, byte for byte, the server that handles
//!   them, and the same behind a gateway, from the crate `counts`.
//! - `serve`: the servers, each in its own process.
//! - `load`: the load generators, which check every response.
//! - `client`: our client, measured beside that of a peer.
//! - `peers`, `gateways`: third-party servers and gateways, from `peers.toml` and `gateways.toml`.
//! - `program`: the program `outlive`, as a gateway.
//! - `bare`, `place`: commits without a store around them, and the places of tasks.
//! - [`soak`]: sustained load, and the memory during it.
//! - `slices`, `suite`, `report`: the rounds, the measurements, and their report.

pub use outlive_counts::{echo, messages, relayed};

// Pinning cores and reading process data need Linux.
#[cfg(target_os = "linux")]
mod bare;
#[cfg(target_os = "linux")]
mod child;
#[cfg(target_os = "linux")]
pub mod cli;
#[cfg(target_os = "linux")]
mod client;
#[cfg(target_os = "linux")]
mod gateways;
#[cfg(target_os = "linux")]
mod load;
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod peers;
#[cfg(target_os = "linux")]
mod place;
#[cfg(target_os = "linux")]
mod program;
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
#[cfg(target_os = "linux")]
mod wanted;
