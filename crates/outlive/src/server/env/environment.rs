//! State that all calls of a server share: clock, limits, seal, shared state, counters, tasks.
//!
//! Handlers access it through their `Cx`. It does not depend on tools, prompts or resources.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
    time::Duration,
};

use outlive_protocol::{PendingRequest, Profile, ProtocolError, Session};
use outlive_wire::CacheHints;

use crate::server::{
    approve::Approve,
    env::{
        public_address::PublicAddress, task_backend::TaskBackend, test_hooks::TestHooks,
        used_states::UsedRequestStates,
    },
    hosts::Hosts,
    metrics::Counters,
    random::CallIds,
    sessions::store::SharedSessions,
    throttle::Throttle,
};

/// State that all calls of a server share.
pub(crate) struct Env {
    /// Clock, limits, seal, and the server's name and version.
    pub(crate) profile: Arc<Profile>,
    pub(crate) states: States,
    /// Whether handlers may send log messages.
    pub(crate) logging: bool,
    /// Cache hints of results that set none.
    pub(crate) cache: CacheHints,
    /// Rate limit on rounds without input responses or with an invalid request state.
    pub(crate) invalid_rounds: Arc<Throttle>,
    /// Used request states, if the server tracks them in memory.
    pub(crate) used_states: Option<UsedRequestStates>,
    /// Whether handlers are replayed after every input response, for development.
    pub(crate) replay_on_input: bool,
    pub(crate) test_hooks: Option<Arc<TestHooks>>,
    pub(crate) tasks: Option<TaskBackend>,
    pub(crate) address: PublicAddress,
    /// Approval of destructive tools that have no rule of their own.
    pub(crate) approve_destructive: Option<Arc<Approve>>,
    /// Source of call IDs.
    pub(crate) call_ids: CallIds,
    pub(crate) counters: Arc<Counters>,
}

/// Shared state by type.
pub(crate) type States = HashMap<TypeId, Arc<dyn Any + Send + Sync>>;

impl Env {
    /// Returns the shared state of type `T`.
    pub(crate) fn state<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        Arc::clone(self.states.get(&TypeId::of::<T>())?).downcast().ok()
    }

    /// Returns the task backend.
    ///
    /// # Errors
    ///
    /// Returns an error if the server has no tasks. That is a bug, because the router rejects task
    /// methods then.
    pub(crate) fn tasks(&self) -> Result<&TaskBackend, ProtocolError> {
        self.tasks.as_ref().ok_or_else(|| ProtocolError::internal("tasks are not enabled"))
    }

    /// Returns the settings for hosts without tasks, if such hosts are supported.
    pub(crate) fn hosts(&self) -> Option<&Hosts> {
        self.tasks.as_ref()?.config.hosts.as_ref()
    }

    /// Returns the sessions that all replicas on the store share, if there is a store.
    pub(crate) fn sessions(&self) -> Option<&SharedSessions> {
        self.tasks.as_ref().map(TaskBackend::sessions)
    }

    /// Opens a request to the client of a session. The response may reach any replica.
    pub(crate) fn open_request(&self, session: &Arc<Session>) -> PendingRequest {
        let pending = session.asked().open();
        if let Some(sessions) = self.sessions() {
            sessions.watch(session);
        }
        pending
    }

    /// Releases the tasks of this process, then closes the streams of clients.
    pub(crate) async fn drain(&self, timeout: Duration) {
        if let Some(tasks) = &self.tasks {
            // First, so that clients continue at another replica at once.
            tasks.bridges.drain();
            tasks.drain(timeout).await;
        }
        // Streams close last: a client that reconnects to another replica then finds its tasks
        // there.
        self.profile.bus.close();
    }

    /// Releases the tasks that calls became after [`Env::drain`]. Does nothing if the server is not
    /// drained.
    pub(crate) async fn drain_promoted(&self, timeout: Duration) {
        if let Some(tasks) = &self.tasks {
            tasks.drain_promoted(timeout).await;
        }
    }
}
