//! The gateway in front of upstreams: calls, latency, lists, memory.

mod calls;
mod clients;
mod latency;
mod lists;
mod memory;
mod ours;

pub(super) use calls::measure as calls;
pub(super) use lists::measure as lists;
pub(super) use memory::measure as memory;
