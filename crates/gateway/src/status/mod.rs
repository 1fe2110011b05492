//! Status of the upstreams: their states, with reasons and remedies.
//!
//! A running gateway writes it to `status.json`, which other processes read with
//! [`GatewayStatus::read`].

mod file;
mod report;
mod state;

pub(crate) use file::{INTERVAL, StatusFile};
pub use report::{GatewayStatus, UpstreamReport, UpstreamStatus};
pub(crate) use state::Problem;
pub use state::State;
