//! State that all requests to a console share.

use std::time::Duration;

use outlive::people::People;

use crate::{
    rate_limit::{RateLimit, StreamLimit},
    sign_in::check::SignIn,
};

/// Average interval of changes by one person, and their number at once.
const WRITE_INTERVAL: Duration = Duration::from_millis(100);
const WRITE_BURST: u32 = 30;

/// Maximum number of event streams of this process.
const MAX_STREAMS: usize = 1_000;

/// Maximum number of event streams of a session.
const MAX_STREAMS_PER_SESSION: usize = 8;

/// The state of a console.
pub(crate) struct ConsoleState {
    pub(crate) people: People,
    pub(crate) sign_in: SignIn,
    /// Path of the console, without a slash at its end, as in `/console`.
    pub(crate) path: String,
    /// Limit of the changes that one person requests.
    pub(crate) writes: RateLimit,
    pub(crate) streams: StreamLimit,
}

impl ConsoleState {
    pub(crate) fn new(people: People, sign_in: SignIn, path: String) -> Self {
        let writes = RateLimit::new(WRITE_INTERVAL, WRITE_BURST);
        let streams = StreamLimit::new(MAX_STREAMS, MAX_STREAMS_PER_SESSION);
        Self { people, sign_in, path, writes, streams }
    }

    /// Returns the path below the console, without a slash at its start. Returns `None` for another
    /// path, and for the path of the console without a slash at its end.
    pub(crate) fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(&self.path)?.strip_prefix('/')
    }
}
