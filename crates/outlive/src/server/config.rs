//! Configuration of tasks: the store, lifetimes, quotas and response modes.

use std::{fmt, sync::Arc, time::Duration};

use outlive_protocol::ResponseModes;
use outlive_tasks::{
    engine::EngineConfig,
    store::{MemoryStore, PeopleStore, Store, StoreError},
};

use crate::server::{
    hosts::{Hosts, Results},
    throttle::RateLimit,
};

/// Configuration of a server's tasks: their store, lifetimes and limits.
#[derive(Clone)]
pub struct TaskConfig {
    pub(crate) store: Arc<dyn Store>,
    /// The same store with lists and decisions, if it has them.
    pub(crate) people: Option<Arc<dyn PeopleStore>>,
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
    pub(crate) promotes_before_input: bool,
    pub(crate) indexed: bool,
    pub(crate) hosts: Option<Hosts>,
    pub(crate) results: Results,
}

/// A way to respond to a call that requests a task, other than with the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the two modes of the proposal")]
pub enum ResponseMode {
    /// The result, if the call ends within [`TaskConfig::immediate_window`].
    Immediate,
    /// The content of a tool with [`streams_content`](crate::server::Tool::streams_content), in
    /// several responses while the task emits it.
    Streaming,
}

impl TaskConfig {
    /// Returns the default configuration for tasks in `store`. Approvals, the console and
    /// notifications need more of a store: [`TaskConfig::people`].
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            people: None,
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
            promotes_before_input: false,
            indexed: false,
            hosts: None,
            results: Results::by_host(),
        }
    }

    /// Returns the default configuration for tasks in a store with lists and decisions, which
    /// approvals, the console and notifications need.
    pub fn people(store: Arc<dyn PeopleStore>) -> Self {
        let people = Some(Arc::clone(&store));
        Self { people, ..Self::new(store) }
    }

    /// Opens the store at `url`: `sqlite:path/to/file`, or `postgres://user@host/database` for
    /// several replicas. `memory:` is the same as [`TaskConfig::in_memory`].
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be opened. The message names the remedy.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        Ok(Self::people(outlive_tasks::store::open_people(url).await?))
    }

    /// Stores tasks in memory. They are lost when the process ends.
    pub fn in_memory() -> Self {
        Self::people(Arc::new(MemoryStore::new()))
    }

    /// Sets the TTL of tasks whose client requests none; one hour by default.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the maximum TTL of a task; thirty days by default. It also limits TTLs that clients
    /// request and tasks with open input requests.
    #[must_use]
    pub fn max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// Sets the poll interval that the server suggests to clients; one second by default.
    #[must_use]
    pub fn poll_interval(mut self, interval: Duration) -> Self {
        self.poll = interval;
        self
    }

    /// Limits the rate of task polls per caller; a thousand per second by default. `None` removes
    /// the limit.
    #[must_use]
    pub fn poll_rate(mut self, limit: impl Into<Option<RateLimit>>) -> Self {
        self.poll_rate = limit.into();
        self
    }

    /// Sets how long the store retains audit events; thirty days by default.
    #[must_use]
    pub fn audit_retention(mut self, retention: Duration) -> Self {
        self.audit_retention = retention;
        self
    }

    /// Sets the maximum number of audit events in the store; a million by default, about 250 MB.
    /// The store deletes the oldest events first. One caller adds at most a tenth of the limit per
    /// day. Further events of that caller go to the log only, and one audit event per minute counts
    /// them.
    #[must_use]
    pub fn max_audit_events(mut self, events: u64) -> Self {
        self.audit_events = events;
        self
    }

    /// Limits the bytes of a task's journal: step results, input responses and partial results
    /// together. The default is 16 MiB. A step whose result does not fit fails.
    #[must_use]
    pub fn max_journal_bytes(mut self, bytes: usize) -> Self {
        self.journal_bytes = bytes;
        self
    }

    /// Limits the open tasks per caller; a thousand by default. Anonymous callers are counted by
    /// network address, separately in each process.
    #[must_use]
    pub fn max_tasks_per_caller(mut self, tasks: usize) -> Self {
        self.quota = tasks;
        self
    }

    /// Returns the TTL of a task whose client requests `wanted` milliseconds.
    pub(crate) fn granted_ttl(&self, wanted: Option<u64>) -> Duration {
        wanted.map_or(self.ttl, Duration::from_millis).min(self.max_ttl)
    }

    /// Limits the open tasks of all anonymous callers together; ten thousand by default.
    #[must_use]
    pub fn max_anonymous_tasks(mut self, tasks: usize) -> Self {
        self.anonymous = tasks;
        self
    }

    /// Limits the stored bytes per caller; 48 MiB by default. The limit counts open and ended tasks
    /// with their requests, journals and results, results under idempotency keys, and sessions.
    ///
    /// Above the limit the caller gets no new task. A tool with `TaskPolicy::Auto` continues
    /// inline. Running tasks of the caller cannot record step results, but their outcomes are
    /// always stored. Anonymous callers are counted by network address, separately in each process.
    #[must_use]
    pub fn max_store_bytes_per_caller(mut self, bytes: u64) -> Self {
        self.store_per_caller = bytes;
        self
    }

    /// Limits the stored bytes of all anonymous callers together; 256 MiB by default.
    #[must_use]
    pub fn max_anonymous_store(mut self, bytes: u64) -> Self {
        self.anonymous_store = bytes;
        self
    }

    /// Limits the stored bytes of all callers together; 4 GiB by default. The server checks the
    /// limit every five seconds.
    #[must_use]
    pub fn max_store(mut self, bytes: u64) -> Self {
        self.max_store = bytes;
        self
    }

    /// Limits the segments that a call may emit; a hundred thousand by default.
    #[must_use]
    pub fn max_segments(mut self, segments: usize) -> Self {
        self.segments = segments;
        self
    }

    /// Limits the bytes of each segment that a call emits; 1 MiB by default.
    #[must_use]
    pub fn max_segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// Offers these response modes to clients of 2025-11-25, in addition to the task. None by
    /// default. A client selects a mode per call; without a selection it receives the task.
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

    /// Sets how long a call may run and still return an immediate result. A streaming call waits
    /// this long for the content of its first response. The default is 250 milliseconds.
    #[must_use]
    pub fn immediate_window(mut self, window: Duration) -> Self {
        self.immediate_window = window;
        self
    }

    /// Sets whether an immediate result is also stored as an ended task that `tasks/result` can
    /// read; off by default.
    #[must_use]
    pub fn store_immediate_results(mut self, track: bool) -> Self {
        self.track_immediate = track;
        self
    }

    /// Sets whether clients of 2026-07-28 can read partial results while a task runs; off by
    /// default. Only clients that declare the extension `dev.outlive/task-partials` see it.
    #[must_use]
    pub fn partial_results(mut self, shared: bool) -> Self {
        self.partials = shared;
        self
    }

    /// Sets whether a call that can be a task becomes one before its first input request; off by
    /// default. The input request and the steps before it then survive a crash.
    #[must_use]
    pub fn promote_before_input(mut self, promote: bool) -> Self {
        self.promotes_before_input = promote;
        self
    }

    /// Sets whether lists by tool, person and tag contain the tasks, and whether delivered tasks of
    /// clients without tasks keep their retention; off by default. A server with a console needs
    /// it.
    #[must_use]
    pub fn index_tasks(mut self, index: bool) -> Self {
        self.indexed = index;
        self
    }

    /// Bridges slow calls of clients without tasks: the server runs them as tasks, and the call
    /// waits for the task as long as its host allows. Off by default (`None`), because it adds tools
    /// to the lists of these clients.
    #[must_use]
    pub fn hosts(mut self, hosts: impl Into<Option<Hosts>>) -> Self {
        self.hosts = hosts.into();
        self
    }

    /// Sets the size limit of results that the server delivers to clients without tasks;
    /// [`Results::by_host`] by default. It applies to a server with [`TaskConfig::hosts`].
    #[must_use]
    pub fn results(mut self, results: Results) -> Self {
        self.results = results;
        self
    }

    /// Changes the configuration of the task engine.
    #[must_use]
    pub fn engine(mut self, change: impl FnOnce(&mut EngineConfig)) -> Self {
        change(&mut self.engine);
        self
    }
}

// Destructures every setting, so that a new setting does not compile until it has a field here. A
// test compares `docs/limits.md` with this output.
impl fmt::Debug for TaskConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            store: _,
            people: _,
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
            promotes_before_input,
            indexed,
            hosts,
            results,
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
            .field("promote_before_input", promotes_before_input)
            .field("index_tasks", indexed)
            .field("hosts", hosts)
            .field("results", results)
            .finish_non_exhaustive()
    }
}
