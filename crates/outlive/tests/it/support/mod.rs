//! Clients made of bytes, a way that breaks, and the schemas that check what comes back.

pub(crate) mod fail_points;
pub(crate) mod gate;
pub(crate) mod http;
pub(crate) mod pipe;
pub(crate) mod proxy;
pub(crate) mod schema;
