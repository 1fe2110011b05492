//! Every bound of the protocol floor, with its default and its reason.

use std::time::Duration;

/// What a server accepts and keeps. Each field can be set; each default is meant for production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of one message. 4 MiB holds a large file in Base64; more belongs in a resource.
    pub max_message_bytes: usize,
    /// Levels of nesting in a message. JSON readers stop at 128; nobody writes 100 by hand.
    pub max_message_depth: usize,
    /// Messages in one batch (2025-03-26 only).
    pub max_batch: usize,
    /// Notifications that wait for a slow reader of one call before log messages are dropped.
    pub max_queued_notifications: usize,
    /// The shortest time between two progress notifications of one call; the newest is kept.
    pub progress_interval: Duration,
    /// Entries on one page of a list.
    pub page_size: usize,
    /// Resources one session or listen stream may subscribe to.
    pub max_subscriptions: usize,
    /// Calls of one connection or session that may be running at once.
    pub max_in_flight: usize,
    /// Bytes of messages that wait for a slow reader of one pipe or HTTP+SSE stream.
    pub max_stream_bytes: usize,
    /// Bytes that are kept of what a client says of itself when it opens a session.
    pub max_handshake_bytes: usize,
    /// Questions of one call that may be open at once.
    pub max_open_inputs: usize,
    /// How often one call may come back with answers and be asked again.
    pub max_rounds: u32,
    /// How long a handler waits for an answer where the wire lets it wait (before 2026-07-28).
    pub input_timeout: Duration,
    /// Bytes of the sealed state that a client keeps between the rounds of a call.
    pub max_request_state_bytes: usize,
    /// How long such a state can be used: the time a user has for an answer.
    pub request_state_ttl: Duration,
    /// How often one call may be sent away to come back with its state and nothing else.
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
