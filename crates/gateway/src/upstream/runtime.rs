//! One upstream at run time: its state and its upstream connections.

use std::{sync::Arc, time::Instant};

use outlive::client::relay::CapabilityClass;

use super::{
    connection::Connection,
    key::{Alive, ConnectionKey},
    lease::{AcquireError, Lease},
    pool::{Found, Pool},
    process_limit::ProcessLimit,
    state::{UpstreamEvents, UpstreamState},
};
use crate::{
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
        events: Arc<dyn UpstreamEvents>,
        limit: &Arc<ProcessLimit>,
    ) -> Self {
        let state = Arc::new(UpstreamState::new(settings, events, limit));
        Self { pool: Pool::new(&state), state }
    }

    /// Returns the right to use the connection of a key, which is opened if necessary.
    pub(crate) async fn acquire(
        &self,
        key: &ConnectionKey,
        alive: &Alive,
    ) -> Result<Lease, AcquireError> {
        let failed = |problem: Option<Problem>| AcquireError::Problem {
            problem: problem.or_else(|| self.state.problem()).unwrap_or_else(closing),
            retry_after: self.state.wait(),
        };
        for _ in 0..ATTEMPTS {
            match self.pool.find(key, alive) {
                Ok(Found::Open(used)) => return Lease::new(used).await,
                Ok(Found::Opening(waiting)) => waiting.done().await.map_err(failed)?,
                Err(error) => {
                    self.state.full(&error);
                    return Err(error);
                }
            }
        }
        Err(failed(None))
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

    /// Stops the process that is idle longest. Returns whether there is one.
    pub(crate) fn stop_idle_process(&self) -> bool {
        self.pool.stop_longest_idle()
    }

    /// Ends all connections: those without calls at once, the others after their last call.
    pub(crate) fn drain(&self) {
        self.pool.drain();
    }

    /// Returns whether connections are being closed.
    pub(crate) fn is_draining(&self) -> bool {
        self.pool.is_closing()
    }

    /// Ends all connections at once, and waits for their processes.
    pub(crate) async fn shutdown(&self) {
        self.pool.shutdown().await;
    }

    /// Returns an open connection with this capability class.
    pub(crate) fn open_with(&self, class: CapabilityClass) -> Option<Arc<Connection>> {
        self.pool.open().into_iter().find(|open| open.class() == class && open.is_open())
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
        status
    }
}

fn closing() -> Problem {
    Problem::new(State::Unreachable, "its connection closed while it was opened", "retry")
}
