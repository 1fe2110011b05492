//! Middleware around all calls: what a [`tower_layer::Layer`] of a server wraps and sees.

pub use super::dispatch::layer::{BoxCallService, BoxError};
pub use outlive_protocol::{Call, ClientNotification, Outcome, Session};
