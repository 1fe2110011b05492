//! Raw clients, a faulty proxy, a store with fail points, and schema validation.

pub(crate) mod fail_points;
pub(crate) mod gate;
pub(crate) mod http;
pub(crate) mod pipe;
pub(crate) mod proxy;
pub(crate) mod schema;
