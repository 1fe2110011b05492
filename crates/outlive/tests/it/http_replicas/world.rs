//! Replicas of one server, and the store they share.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use outlive::{
    Form,
    http::{HttpConfig, StaticTokens},
    server::{Durable, Result, SealKeys, TaskConfig, TaskPolicy, Tool},
    tasks::{
        After, Answer, Answerer, Audit, AuditEvent, Cancelled, Census, Changes, Charge, Claim,
        Claimed, Cleaning, Created, Emitted, Heard, Lease, Listener, MemoryStore, NewTask, OnceKey,
        PageLimit, Store, StoreError, Swept, TaskId, Then, View, WorkerId,
    },
    wire::RawJson,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::http::{ManualClock, Request, Session, TestServer};

pub(super) const ANNA: &str = "annas-token-0123456789";
pub(super) const BERT: &str = "berts-token-0123456789";
pub(super) const VERSION: &str = "2025-11-25";

/// How long a session may be idle.
pub(super) const IDLE: Duration = Duration::from_secs(100);

/// What replicas have in common.
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
    pub(super) async fn replica(&self) -> TestServer {
        self.replica_with(HttpConfig::new()).await
    }

    pub(super) async fn replica_with(&self, config: HttpConfig) -> TestServer {
        self.replica_of(config, |tasks| tasks).await
    }

    pub(super) async fn replica_of(
        &self,
        config: HttpConfig,
        change: impl FnOnce(TaskConfig) -> TaskConfig,
    ) -> TestServer {
        let tasks = TaskConfig::new(Arc::clone(&self.store) as _).engine(|engine| {
            engine.poll = Duration::from_millis(20);
        });
        let tasks = change(tasks);
        let config = config.session_idle(IDLE);
        TestServer::build_with_clock(config, &self.clock, |server| {
            server
                .tasks(tasks)
                .seal_keys(SealKeys::new([7; 32]))
                .tool(Tool::new("form", form))
                .tool(Tool::new("deploy", form).task(TaskPolicy::Always))
        })
        .await
    }

    /// Starts two replicas that know two callers.
    pub(super) async fn two(&self) -> (TestServer, TestServer) {
        let config = || {
            let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
            HttpConfig::new().authenticator(tokens)
        };
        (self.replica_with(config()).await, self.replica_with(config()).await)
    }

    /// Lets time pass, for the replicas and for the store.
    pub(super) fn advance(&self, span: Duration) {
        self.store.inner.shift(span);
        self.clock.advance(span);
    }

    /// Lets so much time pass that replicas look whether what they know is still true.
    pub(super) fn forget_what_was_confirmed(&self) {
        self.advance(Duration::from_secs(1));
    }
}

/// Opens a session of a client that can be asked.
pub(super) async fn open(server: &TestServer, token: Option<&str>) -> Session {
    let hello = Request::initialize(VERSION).param("capabilities", json!({"elicitation": {}}));
    Session::open(server.address(), hello, token).await
}

pub(super) async fn ping(server: &TestServer, session: &Session) -> u16 {
    server.send(session.request("ping")).await.status()
}

/// A store whose notes can be switched off; it knows what was asked of it.
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

    /// How often notes were read or written.
    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    /// All notes that were ever written.
    pub(super) fn written(&self) -> Vec<(String, String)> {
        self.written.lock().unwrap().clone()
    }

    /// Asks the store, unless it is switched off.
    fn note<'a, T: 'a>(&self, ask: impl FnOnce() -> Answer<'a, T>) -> Answer<'a, T> {
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

impl Store for SwitchedStore {
    fn create(&self, task: NewTask) -> Answer<'_, Created> {
        self.inner.create(task)
    }

    fn made<'a>(&'a self, principal: &'a str, once: &'a OnceKey) -> Answer<'a, Option<Created>> {
        self.inner.made(principal, once)
    }

    fn view<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> Answer<'a, Option<View>> {
        self.inner.view(principal, task)
    }

    fn segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> Answer<'a, Option<Emitted>> {
        self.inner.segments(principal, task, after, limit)
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a After>,
        limit: usize,
    ) -> Answer<'a, Vec<View>> {
        self.inner.list(principal, origin, after, limit)
    }

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> Answer<'a, Vec<Claimed>> {
        self.inner.claim(worker, lease, claim)
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> Answer<'a, Vec<Lease>> {
        self.inner.renew(worker, lease)
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, ()> {
        self.inner.release(worker)
    }

    fn write<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Then,
    ) -> Answer<'a, ()> {
        self.inner.write(lease, changes, then)
    }

    fn clean_up<'a>(&'a self, lease: &'a Lease, now: Cleaning) -> Answer<'a, ()> {
        self.inner.clean_up(lease, now)
    }

    fn heard<'a>(&'a self, lease: &'a Lease) -> Answer<'a, Heard> {
        self.inner.heard(lease)
    }

    fn answer<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: Answerer,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> Answer<'a, Option<usize>> {
        self.inner.answer(principal, task, from, answers, max_bytes)
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> Answer<'a, Option<Cancelled>> {
        self.inner.cancel(principal, task, at_once, retention)
    }

    fn sweep(&self, limit: usize, retention: Duration) -> Answer<'_, Swept> {
        self.inner.sweep(limit, retention)
    }

    fn keep<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> Answer<'a, Option<RawJson>> {
        self.log(key, &note);
        self.note(|| self.inner.keep(key, note, ttl, charge))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> Answer<'a, ()> {
        self.log(key, &note);
        self.note(|| self.inner.replace(key, note, ttl, charge))
    }

    fn kept<'a>(&'a self, key: &'a str) -> Answer<'a, Option<RawJson>> {
        self.note(|| self.inner.kept(key))
    }

    fn forget<'a>(&'a self, key: &'a str) -> Answer<'a, ()> {
        self.note(|| self.inner.forget(key))
    }

    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> Answer<'_, ()> {
        self.inner.record(events, retention, max_events)
    }

    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Audit>> {
        self.inner.audit(task, after, limit)
    }

    fn census(&self) -> Answer<'_, Census> {
        self.inner.census()
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> Answer<'a, u64> {
        self.note(|| self.inner.stored_bytes(principal))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> Answer<'a, Option<Duration>> {
        self.inner.next_due(except)
    }

    fn listen(&self, listener: Listener) {
        self.inner.listen(listener);
    }
}
