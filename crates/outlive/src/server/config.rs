//! How a server runs tasks, and which of its tools may become one.

use std::{fmt, sync::Arc, time::Duration};

use outlive_protocol::ResponseModes;
use outlive_tasks::{
    engine::EngineConfig,
    store::{MemoryStore, Store, StoreError},
};

use crate::server::throttle::RateLimit;

/// How a server runs tasks: where they are kept, for how long, and how many.
#[derive(Clone)]
pub struct TaskConfig {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) engine: EngineConfig,
    pub(crate) ttl: Duration,
    pub(crate) max_ttl: Duration,
    pub(crate) poll: Duration,
    pub(crate) poll_rate: Option<RateLimit>,
    pub(crate) audit_retention: Duration,
    pub(crate) audit_events: u64,
    pub(crate) quota: usize,
    pub(crate) anonymous: usize,
    pub(crate) store_per_caller: u64,
    pub(crate) anonymous_store: u64,
    pub(crate) max_store: u64,
    pub(crate) journal_bytes: usize,
    pub(crate) segments: usize,
    pub(crate) segment_bytes: usize,
    pub(crate) modes: Option<ResponseModes>,
    pub(crate) immediate_window: Duration,
    pub(crate) track_immediate: bool,
    pub(crate) partials: bool,
}

/// A way in which a call that asks for a task can be answered, other than with the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the two of the proposal")]
pub enum ResponseMode {
    /// With the result, if it is there at once.
    Immediate,
    /// With the content of a tool that is [`streams_content`](crate::server::Tool::streams_content), in
    /// several responses, as it grows.
    Streaming,
}

impl TaskConfig {
    /// Keeps tasks in a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            engine: EngineConfig::default(),
            ttl: Duration::from_secs(3600),
            max_ttl: Duration::from_secs(30 * 24 * 3600),
            poll: Duration::from_secs(1),
            poll_rate: Some(RateLimit::per_second(1_000.0).burst(2_000)),
            audit_retention: Duration::from_secs(30 * 24 * 3600),
            audit_events: 1_000_000,
            quota: 1_000,
            anonymous: 10_000,
            store_per_caller: 48 << 20,
            anonymous_store: 256 << 20,
            max_store: 4 << 30,
            journal_bytes: 16 << 20,
            segments: 100_000,
            segment_bytes: 1 << 20,
            modes: None,
            immediate_window: Duration::from_millis(250),
            track_immediate: false,
            partials: false,
        }
    }

    /// Keeps tasks where a URL says: `sqlite:path/to/file`, or `postgres://user@host/database` for
    /// several replicas. `memory:` is [`TaskConfig::in_memory`] by name.
    ///
    /// # Errors
    ///
    /// When the store cannot be opened; the message says what to do.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Ok(Self::new(outlive_tasks::store::open(url).await?))
    }

    /// Keeps tasks in memory: they are lost with the process.
    pub fn in_memory() -> Self {
        Self::new(Arc::new(MemoryStore::new()))
    }

    /// How long a task exists if its caller does not say; an hour by default.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// How long a task may exist, whatever its caller says and however long a question of it stays
    /// open; thirty days by default.
    #[must_use]
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// How often callers are told to look; every second by default.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// How often each caller may ask about its tasks; a thousand times a second by default, `None`
    /// for as often as it likes.
    #[must_use]
    pub fn poll_rate(mut self, limit: impl Into<Option<RateLimit>>) -> Self {
        self.poll_rate = limit.into();
        self
    }

    /// For how long the store keeps who did what to which task; thirty days by default.
    #[must_use]
    pub fn audit_retention(mut self, retention: Duration) -> Self {
        self.audit_retention = retention;
        self
    }

    /// How many events the store keeps of who did what to which task; a million by default, about
    /// 250 MB. Of more the oldest go first. Each caller adds a tenth of it a day at most: what is
    /// beyond that is in the log, and one event a minute says how much it is.
    #[must_use]
    pub fn max_audit_events(mut self, events: u64) -> Self {
        self.audit_events = events;
        self
    }

    /// How many bytes the journal of a task may have, values of steps, answers and partial results
    /// together; 16 MiB by default. What does not fit is refused when it is recorded.
    #[must_use]
    pub fn max_journal_bytes(mut self, bytes: usize) -> Self {
        self.journal_bytes = bytes;
        self
    }

    /// How many tasks that have not ended each caller may have; a thousand by default. Callers
    /// without a name are told apart by address, by each process for itself.
    #[must_use]
    pub fn max_tasks_per_caller(mut self, tasks: usize) -> Self {
        self.quota = tasks;
        self
    }

    /// How long a task exists, if its caller wants so many milliseconds.
    pub(crate) fn granted_ttl(&self, wanted: Option<u64>) -> Duration {
        wanted.map_or(self.ttl, Duration::from_millis).min(self.max_ttl)
    }

    /// How many tasks that have not ended all callers without a name may have together; ten
    /// thousand by default.
    #[must_use]
    pub fn max_anonymous_tasks(mut self, tasks: usize) -> Self {
        self.anonymous = tasks;
        self
    }

    /// How many bytes each caller may have stored: its tasks with requests, journals and results,
    /// ended ones included, results under idempotency keys, and all else that is stored for it; 64
    /// MiB by default. Beyond it the caller gets no new task, and a tool with `TaskPolicy::Auto`
    /// goes on without one. What its running tasks record is refused; how they end is always
    /// stored. Callers without a name are told apart by
    /// address, by each process for itself.
    #[must_use]
    pub fn max_store_bytes_per_caller(mut self, bytes: u64) -> Self {
        self.store_per_caller = bytes;
        self
    }

    /// How many bytes all callers without a name may have stored together; 256 MiB by default.
    #[must_use]
    pub fn max_anonymous_store(mut self, bytes: u64) -> Self {
        self.anonymous_store = bytes;
        self
    }

    /// How many bytes all callers may have stored together; 4 GiB by default. Looked at every five
    /// seconds.
    #[must_use]
    pub fn max_store(mut self, bytes: u64) -> Self {
        self.max_store = bytes;
        self
    }

    /// How many blocks a call may emit; a hundred thousand by default.
    #[must_use]
    pub fn max_segments(mut self, segments: usize) -> Self {
        self.segments = segments;
        self
    }

    /// How many bytes each block may have that a call emits; 1 MiB by default.
    #[must_use]
    pub fn max_segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Lets clients of 2025-11-25 choose how a call that asks for a task is answered: beside the task,
    /// in these ways. None by default. Nobody is answered so who does not ask for it in that very
    /// call.
    #[must_use]
    pub fn response_modes(mut self, modes: impl IntoIterator<Item = ResponseMode>) -> Self {
        let mut offered = ResponseModes { task: true, ..ResponseModes::default() };
        for mode in modes {
            match mode {
                ResponseMode::Immediate => offered.immediate = true,
                ResponseMode::Streaming => offered.streaming = true,
            }
        }
        self.modes = Some(offered);
        self
    }

    /// How long a result may take and still be there at once, and how long the first response of
    /// several waits for content; 250 milliseconds by default.
    #[must_use]
    pub fn immediate_window(mut self, window: Duration) -> Self {
        self.immediate_window = window;
        self
    }

    /// Whether a result that is there at once is kept as a task that has ended, for
    /// `tasks/result` to give again; not by default.
    #[must_use]
    pub fn store_immediate_results(mut self, track: bool) -> Self {
        self.track_immediate = track;
        self
    }

    /// Whether clients of 2026-07-28 can read what a task emits while it runs, by the extension
    /// `dev.outlive/task-partials`; not by default. Nobody is told who does not declare it.
    #[must_use]
    pub fn partial_results(mut self, shared: bool) -> Self {
        self.partials = shared;
        self
    }

    /// How tasks are run.
    #[must_use]
    pub fn engine(mut self, change: impl FnOnce(&mut EngineConfig)) -> Self {
        change(&mut self.engine);
        self
    }
}

// Every setting is named, as the method that sets it, and a new one has to be: `docs/limits.md` is
// held against this.
impl fmt::Debug for TaskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            store: _,
            engine,
            ttl,
            max_ttl,
            poll,
            poll_rate,
            audit_retention,
            audit_events,
            quota,
            anonymous,
            store_per_caller,
            anonymous_store,
            max_store,
            journal_bytes,
            segments,
            segment_bytes,
            modes,
            immediate_window,
            track_immediate,
            partials,
        } = self;
        f.debug_struct("TaskConfig")
            .field("engine", engine)
            .field("ttl", ttl)
            .field("max_ttl", max_ttl)
            .field("poll_interval", poll)
            .field("poll_rate", poll_rate)
            .field("audit_retention", audit_retention)
            .field("max_audit_events", audit_events)
            .field("max_tasks_per_caller", quota)
            .field("max_anonymous_tasks", anonymous)
            .field("max_store_bytes_per_caller", store_per_caller)
            .field("max_anonymous_store", anonymous_store)
            .field("max_store", max_store)
            .field("max_journal_bytes", journal_bytes)
            .field("max_segments", segments)
            .field("max_segment_bytes", segment_bytes)
            .field("response_modes", modes)
            .field("immediate_window", immediate_window)
            .field("store_immediate_results", track_immediate)
            .field("partial_results", partials)
            .finish_non_exhaustive()
    }
}
