//! Durable tasks: their cost beside bare commits of the same bytes, and the cost of parked tasks.
//!
//! Engines and stores run in this process, on both cores; servers run in their own process, on one
//! core.

mod bench;
mod creations;
mod figures;
mod http;
mod lives;
mod parked;
mod polls;
mod streams;

use bench::{Bench, CALLERS, LANES, Nothing, rate};
pub(super) use figures::measure;
