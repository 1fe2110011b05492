//! Clients made of bytes, and the schemas that check what comes back.

pub(crate) mod fail_points;
pub(crate) mod gate;
pub(crate) mod http;
pub(crate) mod pipe;
pub(crate) mod schema;
