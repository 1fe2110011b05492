//! Every bound of the client, with its default and its reason.

use std::time::Duration;

/// What a client waits for, keeps and follows. Each default is meant for production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Bytes of one message of a server: results hold files in Base64.
    pub max_message_bytes: usize,
    /// How long a request may take. Progress begins it anew, if the call says so.
    pub request_timeout: Duration,
    /// How long a request may take in all, however much progress it reports.
    pub max_total_timeout: Duration,
    /// How long connecting may take, TLS included.
    pub connect_timeout: Duration,
    /// How long a pipe is given to answer the first question before it is taken for an older server.
    pub probe_timeout: Duration,
    /// How often one call may be asked and come back with answers.
    pub max_rounds: u32,
    /// How often one call may be sent away to come back with nothing but its state.
    pub max_state_retries: u32,
    /// Questions of a server that are answered at once; more are refused.
    pub max_open_inputs: usize,
    /// Pages of one list.
    pub max_pages: usize,
    /// Entries of one list.
    pub max_entries: usize,
    /// Messages that wait for one slow reader before notifications are dropped.
    pub max_queued_notifications: usize,
    /// Bytes of the results that are kept for later, all together.
    pub max_cache_bytes: usize,
    /// How often a stream that broke is taken up again without a word in between.
    pub max_stream_resumptions: u32,
    /// The shortest time between two looks at a task.
    pub min_poll_interval: Duration,
    /// The longest time between two looks at a task.
    pub max_poll_interval: Duration,
    /// The time between two looks at a task whose server names none.
    pub default_poll_interval: Duration,
    /// How long a task that was cancelled is watched for what became of it.
    pub cancel_grace: Duration,
    /// Bytes of a schema that results are held against.
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
