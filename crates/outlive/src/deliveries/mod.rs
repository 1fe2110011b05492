//! Notifications of events of tasks: targets, their messages, and the sender.
//!
//! ```text
//! commit of an event ─▶ DeliveryQueue ─lease─▶ send ─▶ Composer (body) ─▶ DeliveryTransport ─▶ receiver
//! ```
//!
//! - [`Target`]: a receiver with its events and tools. [`DeliveryTransport`]: how messages reach it.
//! - `Webhook` (feature `webhooks`): POST requests with a signature as in Standard Webhooks.
//! - `body`: the content of a message. `schedule`: the times of its attempts. `send`: the sender.
//!
//! The store writes a delivery in the transaction of its event, so no notification is lost. Delivery
//! is at least once: all attempts have the same ID.

mod body;
mod schedule;
mod send;
#[cfg(feature = "webhooks")]
mod sign;
mod target;
mod transport;
#[cfg(feature = "webhooks")]
mod webhook;

pub(crate) use body::{Body, Data, Link};
pub use outlive_tasks::store::TaskEvent;
#[cfg(feature = "webhooks")]
pub use outlive_transport::client::{NetworkPolicy, SecretString};
pub(crate) use send::{Composer, Outbox, Sender};
pub use target::{Contents, Format, Target};
pub use transport::{DeliveryTransport, Message, SendError, SendFuture};
#[cfg(feature = "webhooks")]
pub use webhook::Webhook;
