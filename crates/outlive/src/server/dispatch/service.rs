//! Implements the service traits that transports use.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use outlive_protocol::{
    Call, CallFuture, ClientNotification, CompletionOutcome, ExternalEvents, Profile, Service,
    Session, SessionEvents, SessionStore, era::LIST_ALL_TASKS,
};
use outlive_wire::RawJson;
use tokio::time::Instant;
use tracing::Instrument as _;

use crate::server::{
    dispatch::{core::ServerCore, router},
    run::completion_token::CompletionToken,
};

impl Service for ServerCore {
    fn profile(&self) -> &Arc<Profile> {
        &self.env.profile
    }

    fn knows_method(&self, name: &str) -> bool {
        self.hooks.methods.contains_key(name)
            || (self.env.tasks.is_some() && name == LIST_ALL_TASKS)
    }

    fn start(self: Arc<Self>, call: Arc<Call>) -> CallFuture {
        let span = tracing::debug_span!(
            "mcp.call",
            call_id = call.id(),
            method = call.method_name(),
            principal = call.principal().key(),
        );
        let work = match &self.layers {
            None => router::route(&self, call),
            Some(layers) => layers.start(call),
        };
        match span.is_disabled() {
            true => work,
            false => Box::pin(work.instrument(span)),
        }
    }

    fn notified(&self, notice: ClientNotification<'_>) {
        if let Some(handler) = self.hooks.notifications.get(notice.name) {
            contain("notification handler", || handler(&notice));
        }
    }

    fn shut_down(
        self: Arc<Self>,
        calls: Pin<Box<dyn Future<Output = ()> + Send>>,
        patience: Duration,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let less = |serving: usize| serving.checked_sub(1);
        let before = self.transports.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
        Box::pin(async move {
            let started = Instant::now();
            let drained = async {
                if before.unwrap_or(0) <= 1 {
                    self.env.drain(patience).await;
                }
            };
            tokio::join!(drained, calls);
            // The drain does not wait for calls, and a call may have become a task after it.
            self.env.drain_promoted(patience.saturating_sub(started.elapsed())).await;
        })
    }
}

impl SessionEvents for ServerCore {
    fn session_opened(&self, session: &Arc<Session>) {
        self.env.counters.sessions_opened.add(1);
        self.hooks.on_open.iter().for_each(|hook| contain("session hook", || hook(session)));
    }

    fn session_closed(&self, session: &Arc<Session>) {
        self.env.counters.sessions_closed.add(1);
        self.hooks.on_close.iter().for_each(|hook| contain("session hook", || hook(session)));
    }

    fn session_store(&self) -> Option<&dyn SessionStore> {
        self.env.tasks.as_ref().map(|tasks| tasks.sessions() as &dyn SessionStore)
    }
}

impl ExternalEvents for ServerCore {
    fn knows_token(&self, token: &str) -> bool {
        CompletionToken::open(&self.env, token).is_some()
    }

    fn complete(
        self: Arc<Self>,
        token: &str,
        value: RawJson,
    ) -> Pin<Box<dyn Future<Output = CompletionOutcome> + Send>> {
        let token = CompletionToken::open(&self.env, token);
        Box::pin(async move {
            match token {
                Some(token) => token.deliver(&self.env, value).await,
                None => CompletionOutcome::Unknown,
            }
        })
    }
}

/// Runs a callback of the application. A panic in it must not close a connection.
fn contain(what: &str, run: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!("{what} panicked");
    }
}
