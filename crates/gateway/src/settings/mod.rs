//! Settings of the gateway and of its upstreams, as types. The program reads them from its file.

mod auth;
mod check;
mod check_auth;
mod check_url;
mod closest;
mod gateway;
mod policy;
mod supervision;
mod tool;
mod upstream;

pub(crate) use auth::{AuthKind, Exchange};
pub use auth::{ExchangeSubject, UpstreamAuth};
pub use check::GatewayError;
pub(crate) use check::check;
pub(crate) use closest::closest;
pub use gateway::{CallAudit, Discovery, GatewaySettings};
pub use policy::Policy;
pub(crate) use policy::{MAX_ATTEMPTS, TIMEOUT};
pub use supervision::Supervision;
pub use tool::ToolSettings;
pub(crate) use upstream::{Credential, Endpoint};
pub use upstream::{InputForwarding, Isolation, LogLevel, Pin, Start, Upstream};
