//! Metrics of the upstreams: counters, and their text for Prometheus.

mod histogram;
mod meter;
mod text;

pub(crate) use meter::{CallOutcome, InputKind, InputPath, Meter};
pub use text::GatewayMetrics;
pub(crate) use text::UpstreamMetrics;
