//! One upstream at run time: its status, its upstream connections, their keys and limits.

mod adopted;
mod carrier;
mod connection;
mod environment;
mod key;
mod lease;
mod offered;
mod open;
mod open_supervised;
mod pool;
mod process_limit;
mod resume;
mod runtime;
mod state;
mod stderr;
mod supervised;
mod supervisor;
mod token_check;
mod watch;

pub(crate) use carrier::{Carried, Routed, Ticket, id_of};
pub(crate) use connection::Connection;
pub(crate) use key::{ANONYMOUS, Alive, CatalogKey, ConnectionKey, OwnerRules};
pub(crate) use lease::{AcquireError, Lease, acquire_permit, cancelled};
pub(crate) use process_limit::ProcessLimit;
pub(crate) use runtime::Runtime;
pub(crate) use state::{UpstreamEvents, UpstreamState, unix_millis};
pub(crate) use supervised::Supervised;
pub(crate) use supervisor::{Supervisor, TaskLabel};
