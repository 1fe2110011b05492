//! Notifications of a server outside of calls: subscriptions, list changes, log messages.

pub use super::{
    notice::ServerNotification,
    notices::Notifications,
    subscription::{ListenFilter, Subscription},
};
