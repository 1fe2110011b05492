//! One upstream at run time: its state and its upstream connections.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    connection::Connection,
    key::{Alive, CatalogKey, ConnectionKey},
    lease::{AcquireError, InUse, Lease},
    pool::{Found, Pool},
    process_limit::ProcessLimit,
    state::{UpstreamEvents, UpstreamState},
    supervisor::Supervisor,
};
use crate::{
    credentials::Credentials,
    metrics::Meter,
    settings::Upstream,
    status::{Problem, State, UpstreamStatus},
};

/// Attempts of a call to get a connection that does not close at once.
const ATTEMPTS: usize = 3;

/// One upstream at run time.
#[derive(Debug)]
pub(crate) struct Runtime {
    pub(crate) state: Arc<UpstreamState>,
    pool: Arc<Pool>,
}

impl Runtime {
    pub(crate) fn new(
        settings: Upstream,
        meter: Arc<Meter>,
        events: Arc<dyn UpstreamEvents>,
        limit: &Arc<ProcessLimit>,
        supervisor: Option<&Arc<Supervisor>>,
        credentials: &Arc<Credentials>,
    ) -> Self {
        let state = UpstreamState::new(settings, meter, events, limit, supervisor, credentials);
        let state = Arc::new(state);
        Self { pool: Pool::new(&state), state }
    }

    /// Returns the right to use the connection of a key, which is opened if necessary. Waits in
    /// memory if too many calls use it.
    pub(crate) async fn acquire(
        &self,
        key: &ConnectionKey,
        alive: &Alive,
    ) -> Result<Lease, AcquireError> {
        self.connect(key, alive).await?.lease().await
    }

    /// Returns the connection of a key, which is opened if necessary.
    pub(crate) async fn connect(
        &self,
        key: &ConnectionKey,
        alive: &Alive,
    ) -> Result<InUse, AcquireError> {
        let failed = |problem: Option<Problem>| AcquireError::Problem {
            problem: problem.or_else(|| self.state.problem()).unwrap_or_else(closing),
            retry_after: self.state.wait(),
        };
        for _ in 0..ATTEMPTS {
            match self.pool.find(key, alive) {
                Ok(Found::Open(used)) => return Ok(used),
                Ok(Found::Opening(waiting)) => waiting.done().await.map_err(failed)?,
                Err(error) => {
                    self.state.full(&error);
                    return Err(error);
                }
            }
        }
        Err(failed(None))
    }

    /// Returns the supervisor of processes that survive the gateway, if there is one.
    pub(crate) fn supervisor(&self) -> Option<&Arc<Supervisor>> {
        self.state.supervisor.as_ref()
    }

    /// Returns the right to use the connection to a process that an earlier run of a call used, also
    /// one of an earlier gateway. Returns `None` if the process has ended.
    pub(crate) async fn resume(&self, process: &str) -> Result<Option<Lease>, AcquireError> {
        match self.pool.resume(process).await {
            Some(used) => used.lease().await.map(Some),
            None => Ok(None),
        }
    }

    /// Stops idle connections, and rejects input requests that waited too long.
    pub(crate) fn tend(&self, now: Instant) {
        let was_stopped = self.pool.stop_idle(now, self.state.settings().idle_stop);
        let open = self.pool.open();
        open.iter().for_each(|connection| connection.carrier.expire(now));
        // A limit is no longer reached when a place is free.
        let is_full = self.state.state() == State::Full;
        if is_full || (was_stopped && open.is_empty() && self.state.problem().is_none()) {
            let state = if open.is_empty() { State::Idle } else { State::Ready };
            self.state.set_state(state, None);
        }
    }

    /// Allows the next attempt to connect at once, as after a login.
    pub(crate) fn retry_now(&self) {
        self.state.retry_now();
        if !matches!(self.state.state(), State::NeedsLogin | State::Refused) {
            return;
        }
        let state = if self.pool.open().is_empty() { State::Idle } else { State::Ready };
        self.state.set_state(state, None);
    }

    /// Lets the next call of a principal open another connection, with its current login.
    pub(crate) fn retire_of(&self, principal: &str) {
        let open = self.pool.open().into_iter();
        let own = open.filter(|connection| connection.key.principal() == Some(principal));
        own.for_each(|connection| connection.retire());
    }

    /// Stops the process that is idle longest. Returns whether there is one.
    pub(crate) fn stop_idle_process(&self) -> bool {
        self.pool.stop_longest_idle()
    }

    /// Ends all connections: those without calls at once, the others after their last call.
    pub(crate) fn drain(&self) {
        self.pool.drain();
    }

    /// Returns whether connections of earlier settings are still needed.
    pub(crate) fn is_draining(&self) -> bool {
        self.pool.is_busy()
    }

    /// Ends all connections at once, and waits for their processes.
    pub(crate) async fn shutdown(&self) {
        self.pool.shutdown().await;
    }

    /// Returns an open connection over which this catalog is read.
    pub(crate) fn open_with(&self, catalog: &CatalogKey) -> Option<Arc<Connection>> {
        self.pool.open().into_iter().find(|open| open.catalog() == *catalog && open.is_open())
    }

    /// Returns the open connections whose lists must be read again, because the upstream does not
    /// notify of changes.
    pub(crate) fn take_unlisted(&self, now: Instant, interval: Duration) -> Vec<Arc<Connection>> {
        let open = self.pool.open().into_iter();
        open.filter(|open| open.is_open() && open.takes_relist(now, interval)).collect()
    }

    /// Returns the open connections of an owner.
    pub(crate) fn open_of(&self, key: &ConnectionKey) -> Vec<Arc<Connection>> {
        let open = self.pool.open().into_iter();
        open.filter(|open| open.is_open() && open.key.is_of_same_owner(key)).collect()
    }

    /// Returns the status, without the numbers of the catalog.
    pub(crate) fn report(&self) -> UpstreamStatus {
        let open = self.pool.open();
        let mut status = self.state.report();
        status.protocol_versions = open.iter().map(|open| open.version.to_string()).collect();
        status.protocol_versions.sort();
        status.protocol_versions.dedup();
        status.processes = open.iter().filter(|connection| connection.is_process()).count();
        status.connections = open.len();
        status.calls_in_flight = open.iter().map(|connection| connection.calls()).sum();
        status.warnings = unexpected(&open);
        status
    }
}

/// Returns what the upstream sent and should not have sent.
fn unexpected(open: &[Arc<Connection>]) -> Vec<String> {
    let all: Vec<_> = open.iter().map(|open| open.client.unexpected_messages()).collect();
    let responses: u64 = all.iter().map(|all| all.responses).sum();
    let inputs: u64 = all.iter().map(|all| all.input_requests).sum();
    let dropped: u64 = all.iter().map(|all| all.notifications).sum();
    let texts = [
        (responses, format!("it sent {responses} responses that no request waited for")),
        (inputs, format!("it sent {inputs} input requests that the client does not declare")),
        (dropped, format!("{dropped} of its notifications were dropped: it sends them too fast")),
    ];
    texts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect()
}

fn closing() -> Problem {
    Problem::new(State::Unreachable, "its connection closed while it was opened", "retry")
}
