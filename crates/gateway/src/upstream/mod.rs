//! One upstream at run time: its status, its upstream connections, their keys and limits.

mod carrier;
mod connection;
mod key;
mod lease;
mod open;
mod pool;
mod process_limit;
mod runtime;
mod state;
mod stderr;
mod watch;

pub(crate) use carrier::{Carried, Carrier, Routed, Ticket};
pub(crate) use connection::Connection;
pub(crate) use key::{Alive, ConnectionKey, OwnerRules};
pub(crate) use lease::{AcquireError, Lease};
pub(crate) use process_limit::ProcessLimit;
pub(crate) use runtime::Runtime;
pub(crate) use state::{UpstreamEvents, UpstreamState, unix_millis};
