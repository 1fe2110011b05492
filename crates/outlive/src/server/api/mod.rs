//! Layer 9: the builder, and the server that it makes.

pub(crate) mod build;
pub(crate) mod builder;
#[cfg(feature = "http")]
mod http;
pub(crate) mod server;
#[cfg_attr(not(feature = "skills"), path = "no_skills.rs")]
pub(crate) mod skills;
#[cfg(feature = "testing")]
mod test_cleanup;
