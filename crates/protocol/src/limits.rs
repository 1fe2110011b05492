//! The limits of the protocol core, with their defaults.

use std::time::Duration;

/// Limits of a server. The defaults are meant for production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum bytes of one message. 4 MiB holds a large file in Base64; use a resource for more.
    pub max_message_bytes: usize,
    /// Maximum nesting depth of a message. Common JSON parsers stop at 128.
    pub max_message_depth: usize,
    /// Maximum messages in one batch (2025-03-26 only).
    pub max_batch: usize,
    /// Maximum queued notifications of one call. Above it, the server drops log messages.
    pub max_queued_notifications: usize,
    /// Minimum interval between two progress notifications of one call. The newest progress is
    /// sent.
    pub progress_interval: Duration,
    /// Entries on one page of a list.
    pub page_size: usize,
    /// Maximum resources that one session or listen stream subscribes to.
    pub max_subscriptions: usize,
    /// Maximum calls of one connection or session that run at the same time.
    pub max_in_flight: usize,
    /// Maximum bytes of queued messages for one stdio connection or HTTP+SSE stream.
    pub max_stream_bytes: usize,
    /// Maximum bytes of `clientInfo` and capabilities that a session stores.
    pub max_handshake_bytes: usize,
    /// Maximum open input requests of one call.
    pub max_open_inputs: usize,
    /// Maximum rounds of one call.
    pub max_rounds: u32,
    /// Maximum time that a handler waits for an input response on a legacy stream.
    pub input_timeout: Duration,
    /// Maximum bytes of a request state.
    pub max_request_state_bytes: usize,
    /// Validity of a request state, and so the time that a user has to respond.
    pub request_state_ttl: Duration,
    /// Maximum yields of one call: results with only a request state, so that another
    /// replica continues it.
    pub max_yields: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_message_bytes: 4 << 20,
            max_message_depth: 100,
            max_batch: 100,
            max_queued_notifications: 256,
            progress_interval: Duration::from_millis(20),
            page_size: 100,
            max_subscriptions: 1_000,
            max_in_flight: 1_000,
            max_stream_bytes: 4 << 20,
            max_handshake_bytes: 16 << 10,
            max_open_inputs: 32,
            max_rounds: 16,
            input_timeout: Duration::from_secs(15 * 60),
            max_request_state_bytes: 16 << 10,
            request_state_ttl: Duration::from_secs(15 * 60),
            max_yields: 3,
        }
    }
}
