//! Hosts as data: which limits a client without tasks has, and how its calls are bridged.
//!
//! A slow call of a client without tasks is a *bridged call*: its run is a task, and the call waits
//! for this task in slices that the client allows. [`Hosts`] turns bridging on:
//! [`TaskConfig::hosts`](crate::server::tasks::TaskConfig::hosts).
//!
//! ```
//! use std::time::Duration;
//! use outlive::server::hosts::{AnswerBy, Host, Hosts, Repeat};
//!
//! let hosts = Hosts::known()
//!     .host("acme-agent", Host::new().call_timeout(Duration::from_secs(30)).result_tokens(8_000))
//!     .repeat(Repeat::Join)
//!     .answers([AnswerBy::Link]);
//! # let _ = hosts;
//! ```
//!
//! The private modules: `client` is the client of a call, `known` the table of known hosts, `limits`
//! the limits of one client, `slice` the wait of one request. `learned` stores the call timeouts
//! that `observations` derives from timeouts.

mod answer_by;
pub(crate) mod client;
mod config;
mod host;
pub(crate) mod known;
pub(crate) mod learned;
pub(crate) mod limits;
pub(crate) mod observations;
mod repeat;
pub(crate) mod reserved;
mod results;
pub(crate) mod slice;

pub use answer_by::AnswerBy;
pub use config::Hosts;
pub use host::Host;
pub use repeat::Repeat;
pub use reserved::RESERVED_TOOL_NAMES;
pub use results::Results;
