//! Limits and timeouts of the client, with their defaults.

use std::time::Duration;

/// Limits and timeouts of a client. The defaults suit production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Bytes of one message. The default leaves room for files in Base64.
    pub max_message_bytes: usize,
    /// Timeout of a request. Progress notifications restart it, unless the call disables that.
    pub request_timeout: Duration,
    /// Total timeout of a request, regardless of progress.
    pub max_total_timeout: Duration,
    /// Timeout of a connection attempt, including TLS.
    pub connect_timeout: Duration,
    /// Time that a server on a pipe has for its first response. The client then assumes a legacy
    /// server.
    pub probe_timeout: Duration,
    /// Rounds with input responses per call.
    pub max_rounds: u32,
    /// Rounds per call in which the server requests no input and only returns a request state.
    pub max_state_retries: u32,
    /// Input requests of a server that are open at once. The client rejects more.
    pub max_open_inputs: usize,
    /// Pages per list.
    pub max_pages: usize,
    /// Entries per list.
    pub max_entries: usize,
    /// Notifications queued for a slow reader before the oldest are dropped.
    pub max_queued_notifications: usize,
    /// Lines of a pipe in a row that are not JSON-RPC messages. Beyond that, the client closes the
    /// pipe.
    pub max_invalid_lines: usize,
    /// Bytes of all cached results.
    pub max_cache_bytes: usize,
    /// Attempts to resume a broken stream before a new message arrives.
    pub max_stream_resumptions: u32,
    /// Shortest poll interval of a task.
    pub min_poll_interval: Duration,
    /// Longest poll interval of a task.
    pub max_poll_interval: Duration,
    /// Poll interval of a task whose server names none.
    pub default_poll_interval: Duration,
    /// Time that the client waits for a cancelled task to end.
    pub cancel_grace: Duration,
    /// Bytes of an output schema that results are validated against.
    pub max_schema_bytes: usize,
    /// Bytes of the partial results of one call.
    pub max_segment_bytes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            max_message_bytes: 16 << 20,
            request_timeout: Duration::from_secs(60),
            max_total_timeout: Duration::from_secs(60 * 60),
            connect_timeout: Duration::from_secs(10),
            probe_timeout: Duration::from_secs(5),
            max_rounds: 16,
            max_state_retries: 8,
            max_open_inputs: 32,
            max_pages: 1_000,
            max_entries: 100_000,
            max_queued_notifications: 256,
            max_invalid_lines: 100,
            max_cache_bytes: 16 << 20,
            max_stream_resumptions: 8,
            min_poll_interval: Duration::from_millis(100),
            max_poll_interval: Duration::from_secs(60),
            default_poll_interval: Duration::from_secs(1),
            cancel_grace: Duration::from_secs(60),
            max_schema_bytes: 1 << 20,
            max_segment_bytes: 64 << 20,
        }
    }
}
