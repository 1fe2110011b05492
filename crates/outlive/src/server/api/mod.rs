//! Layer 9: the server builder and the server.

pub(crate) mod build;
pub(crate) mod builder;
#[cfg(feature = "http")]
mod http;
pub(crate) mod notifications;
mod notify;
pub(crate) mod server;
pub(crate) mod shown_tool;
#[cfg_attr(not(feature = "skills"), path = "no_skills.rs")]
pub(crate) mod skills;
#[cfg(feature = "testing")]
mod test_cleanup;
