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
        AuditEvent, AuditRecord, CancelOutcome, ChangeListener, Changes, Charge, Claim,
        ClaimedTask, CleanupState, CreateOutcome, IdempotencyKey, Inbox, InputSource, Lease,
        ListCursor, MemoryStore, NewTask, PageLimit, Store, StoreError, StoreFuture, StoreStats,
        StoredSegments, SweepReport, TaskId, TaskRecord, Transition, WorkerId,
    },
    wire::RawJson,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::support::http::{HttpFixture, ManualClock, Request, Session};

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

    /// Starts two replicas that know two callers.
    pub(super) async fn two(&self) -> (HttpFixture, HttpFixture) {
        let config = || {
            let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
            HttpConfig::new().authenticator(tokens)
        };
        (self.replica_with(config()).await, self.replica_with(config()).await)
    }

    /// Lets time pass, for the replicas and for the store.
    pub(super) fn advance(&self, span: Duration) {
        self.store.inner.advance_clock(span);
        self.clock.advance(span);
    }

    /// Lets so much time pass that replicas look whether what they know is still true.
    pub(super) fn forget_what_was_confirmed(&self) {
        self.advance(Duration::from_secs(1));
    }
}

/// Opens a session of a client that can be asked.
pub(super) async fn open(server: &HttpFixture, token: Option<&str>) -> Session {
    let hello = Request::initialize(VERSION).param("capabilities", json!({"elicitation": {}}));
    Session::open(server.address(), hello, token).await
}

pub(super) async fn ping(server: &HttpFixture, session: &Session) -> u16 {
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

impl Store for SwitchedStore {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        self.inner.create(task)
    }

    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>> {
        self.inner.find(principal, once)
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        self.inner.get(principal, task)
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        self.inner.read_segments(principal, task, after, limit)
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        self.inner.list(principal, origin, after, limit)
    }

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
        self.inner.claim(worker, lease, claim)
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>> {
        self.inner.renew(worker, lease)
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        self.inner.release(worker)
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        self.inner.commit(lease, changes, then)
    }

    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()> {
        self.inner.finish_cleanup(lease, now)
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        self.inner.inbox(lease)
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
        self.inner.respond(principal, task, from, answers, max_bytes)
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>> {
        self.inner.cancel(principal, task, at_once, retention)
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        self.inner.sweep(limit, retention)
    }

    fn keep<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        self.log(key, &note);
        self.note(|| self.inner.keep(key, note, ttl, charge))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        self.log(key, &note);
        self.note(|| self.inner.replace(key, note, ttl, charge))
    }

    fn kept<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        self.note(|| self.inner.kept(key))
    }

    fn forget<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.note(|| self.inner.forget(key))
    }

    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()> {
        self.inner.record(events, retention, max_events)
    }

    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        self.inner.audit(task, after, limit)
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        self.inner.stats()
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        self.note(|| self.inner.stored_bytes(principal))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        self.inner.next_due(except)
    }

    fn subscribe(&self, listener: ChangeListener) {
        self.inner.subscribe(listener);
    }
}
