//! Replicas of one server and their shared store.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    Form,
    server::{
        Durable, Result, SealKeys, Tool,
        http::{HttpConfig, StaticTokens},
        tasks::{TaskConfig, TaskPolicy},
    },
    store::{Charge, KeyValueStore, MemoryStore, StoreError, StoreFuture, StoreMonitor},
    wire::RawJson,
};
use outlive_tasks::delegate_store;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::http::{HttpFixture, ManualClock, Request, Session};

pub(super) const ANNA: &str = "annas-token-0123456789";
pub(super) const BERT: &str = "berts-token-0123456789";
pub(super) const VERSION: &str = "2025-11-25";

/// Idle timeout of a session.
pub(super) const IDLE: Duration = Duration::from_secs(100);

/// The store and the clock that the replicas share.
#[derive(Default)]
pub(super) struct Common {
    pub(super) store: Arc<SwitchedStore>,
    pub(super) clock: ManualClock,
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    yes: bool,
}

async fn form(cx: Durable) -> Result<String> {
    let approval: Approval = cx.elicit("sure", "Really?").await?;
    Ok(format!("form {}", approval.yes))
}

impl Common {
    /// Starts a replica.
    pub(super) async fn replica(&self) -> HttpFixture {
        self.replica_with(HttpConfig::new()).await
    }

    pub(super) async fn replica_with(&self, config: HttpConfig) -> HttpFixture {
        self.replica_of(config, |tasks| tasks).await
    }

    pub(super) async fn replica_of(
        &self,
        config: HttpConfig,
        change: impl FnOnce(TaskConfig) -> TaskConfig,
    ) -> HttpFixture {
        let tasks = TaskConfig::new(Arc::clone(&self.store) as _).engine(|engine| {
            engine.poll_interval = Duration::from_millis(20);
        });
        let tasks = change(tasks);
        let config = config.session_idle_timeout(IDLE);
        HttpFixture::build_with_clock(config, &self.clock, |server| {
            server
                .tasks(tasks)
                .seal_keys(SealKeys::new([7; 32]))
                .tool(Tool::new("form", form))
                .tool(Tool::new("deploy", form).task(TaskPolicy::Always))
        })
        .await
    }

    /// Starts two replicas that authenticate two principals.
    pub(super) async fn two(&self) -> (HttpFixture, HttpFixture) {
        let config = || {
            let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
            HttpConfig::new().authenticator(tokens)
        };
        (self.replica_with(config()).await, self.replica_with(config()).await)
    }

    /// Advances the clock of the replicas and of the store.
    pub(super) fn advance(&self, span: Duration) {
        self.store.inner.advance_clock(span);
        self.clock.advance(span);
    }

    /// Advances the clock so that replicas check their sessions in the store again.
    pub(super) fn forget_what_was_confirmed(&self) {
        self.advance(Duration::from_secs(1));
    }
}

/// Opens a session of a client that supports elicitation.
pub(super) async fn open(server: &HttpFixture, token: Option<&str>) -> Session {
    let hello = Request::initialize(VERSION).param("capabilities", json!({"elicitation": {}}));
    Session::open(server.address(), hello, token).await
}

pub(super) async fn ping(server: &HttpFixture, session: &Session) -> u16 {
    server.send(session.request("ping")).await.status()
}

/// A store whose key-value entries can be switched off. It counts and records operations.
#[derive(Default)]
pub(super) struct SwitchedStore {
    inner: MemoryStore,
    off: AtomicBool,
    asked: AtomicUsize,
    written: Mutex<Vec<(String, String)>>,
}

impl SwitchedStore {
    pub(super) fn switch(&self, on: bool) {
        self.off.store(!on, Ordering::Relaxed);
    }

    /// Number of reads and writes of key-value entries.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// Every key-value entry that was written.
    pub(super) fn written(&self) -> Vec<(String, String)> {
        self.written.lock().unwrap().clone()
    }

    /// Runs the operation, unless the store is switched off.
    fn note<'a, T: 'a>(&self, ask: impl FnOnce() -> StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match self.off.load(Ordering::Relaxed) {
            true => Box::pin(async { Err(StoreError::Unavailable("switched off".to_owned())) }),
            false => ask(),
        }
    }

    fn log(&self, key: &str, note: &RawJson) {
        self.written.lock().unwrap().push((key.to_owned(), note.get().to_owned()));
    }
}

delegate_store!(
    impl TaskStore, WorkQueue, BridgeStore, InputStore, ResultStore, AuditLog for SwitchedStore:
        |store| &store.inner
);

impl KeyValueStore for SwitchedStore {
    fn put_if_absent<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        self.log(key, &value);
        self.note(|| self.inner.put_if_absent(key, value, ttl, charge))
    }

    fn put<'a>(
        &'a self,
        key: &'a str,
        value: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        self.log(key, &value);
        self.note(|| self.inner.put(key, value, ttl, charge))
    }

    fn get_value<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        self.note(|| self.inner.get_value(key))
    }

    fn delete<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.note(|| self.inner.delete(key))
    }
}

impl StoreMonitor for SwitchedStore {
    delegate_store!(stats: |store| &store.inner);

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        self.note(|| self.inner.stored_bytes(principal))
    }
}
