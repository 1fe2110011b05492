//! What every call of a server shares: clock, limits, seal, shared state, counters, tasks.
//!
//! Handlers reach it through their `Cx`. It knows no tool, prompt or resource.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::Arc,
    time::Duration,
};

use outlive_protocol::{PendingRequest, Profile, ProtocolError, Session};
use outlive_wire::CacheHints;

use crate::server::{
    env::{task_backend::TaskBackend, test_hooks::TestHooks, used_states::UsedRequestStates},
    metrics::Counters,
    random::CallIds,
    sessions::store::SharedSessions,
    throttle::Throttle,
};

/// What every call of a server shares.
pub(crate) struct Env {
    /// Clock, limits, seal, and what the server calls itself.
    pub(crate) profile: Arc<Profile>,
    pub(crate) states: States,
    /// Whether handlers may send log messages.
    pub(crate) logging: bool,
    /// How long clients may keep what does not say otherwise.
    pub(crate) cache: CacheHints,
    /// Limits the rounds that bring no input response, or a request state that cannot be opened.
    pub(crate) invalid_rounds: Arc<Throttle>,
    /// The request states that were presented, if the server remembers them.
    pub(crate) used_states: Option<UsedRequestStates>,
    /// Whether handlers run again at every input response, as an author wants it while testing.
    pub(crate) replay_on_input: bool,
    pub(crate) test_hooks: Option<Arc<TestHooks>>,
    pub(crate) tasks: Option<TaskBackend>,
    /// The IDs of calls that use one.
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
    /// If the server runs no tasks: a bug, because the router rejects their methods then.
    pub(crate) fn tasks(&self) -> Result<&TaskBackend, ProtocolError> {
        self.tasks.as_ref().ok_or_else(|| ProtocolError::internal("tasks are not switched on"))
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

    /// Stops to run tasks in this process, then ends the streams on which clients listen.
    pub(crate) async fn drain(&self, timeout: Duration) {
        if let Some(tasks) = &self.tasks {
            tasks.drain(timeout).await;
        }
        // After that, because a client that goes to another replica finds its tasks there.
        self.profile.bus.close();
    }
}
