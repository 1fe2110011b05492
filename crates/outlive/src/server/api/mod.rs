//! Layer 9: the builder, and the server that it makes.

pub(crate) mod build;
pub(crate) mod builder;
pub(crate) mod server;
