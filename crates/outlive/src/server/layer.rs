//! Types for middleware: a [`tower_layer::Layer`] wraps a [`BoxCallService`] and sees every
//! [`Call`].

#[cfg(feature = "tower")]
pub use super::dispatch::layer::{BoxCallService, BoxError};
pub use outlive_protocol::{Call, ClientNotification, Outcome, Session};
