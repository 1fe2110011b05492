//! Settings of the gateway and of its upstreams, as types. The program reads them from its file.

mod check;
mod closest;
mod gateway;
mod policy;
mod tool;
mod upstream;

pub use check::GatewayError;
pub(crate) use check::check;
pub(crate) use closest::closest;
pub use gateway::{Discovery, GatewaySettings};
pub use policy::Policy;
pub(crate) use policy::TIMEOUT;
pub use tool::ToolSettings;
pub(crate) use upstream::{Credential, Endpoint};
pub use upstream::{InputForwarding, Isolation, LogLevel, Pin, Upstream};
