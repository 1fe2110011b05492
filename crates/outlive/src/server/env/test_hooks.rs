//! Hooks of `outlive::testing` into the journals of a server under test.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlive_protocol::{Call, Clock};
use outlive_tasks::{CrashPoint, Journal, JournalSnapshot};

use crate::server::env::test_clock::TestClock;

/// Controls and observes the journals of a server under test, one call at a time.
#[derive(Debug)]
pub(crate) struct TestHooks {
    plan: Mutex<Plan>,
    clock: Arc<TestClock>,
}

#[derive(Debug, Default)]
struct Plan {
    crash: Option<CrashPoint>,
    /// Number of entries recorded in earlier rounds.
    recorded: usize,
    unused: Vec<String>,
    keys: Vec<String>,
    happened: bool,
    /// Whether the task is cancelled at `crash` instead of crashing.
    cancels: bool,
    /// The ended call and its journal.
    ended: Option<(Arc<Call>, JournalSnapshot)>,
    /// Whether the handler is replayed over its whole journal after it has returned.
    replays: bool,
    /// Result of the handler before the replay.
    returned: Option<String>,
    /// Result of the replay, if it differs.
    differs: Option<String>,
}

impl TestHooks {
    /// Returns hooks, and wraps the server's clock in one that can skip time.
    pub(crate) fn install(server_clock: &mut Arc<dyn Clock>) -> Arc<Self> {
        let clock = Arc::new(TestClock::new(Arc::clone(server_clock)));
        *server_clock = clock.clone();
        Arc::new(Self { plan: Mutex::default(), clock })
    }

    /// Plans the next call: its task is cancelled when this key is recorded.
    pub(crate) fn plan_cancel(&self, key: String) {
        let crash = Some(CrashPoint::After(key));
        *self.lock() = Plan { crash, cancels: true, ..Plan::default() };
    }

    /// Returns the ended call and its journal.
    pub(crate) fn ended_call(&self) -> Option<(Arc<Call>, JournalSnapshot)> {
        self.lock().ended.clone()
    }

    /// Skips the time that a timer waits for.
    pub(crate) fn skip(&self, millis: u64) {
        self.clock.skip(millis);
    }

    /// Plans the next call. With `replays`, the handler is replayed after it has returned and must
    /// return the same result.
    pub(crate) fn plan(&self, crash: Option<CrashPoint>, replays: bool) {
        *self.lock() = Plan { crash, replays, ..Plan::default() };
    }

    /// Returns the results of the handler and of its replay, if they differ.
    pub(crate) fn differs(&self) -> Option<(String, String)> {
        let plan = self.lock();
        plan.returned.clone().zip(plan.differs.clone())
    }

    /// Records the result of the handler. Returns whether the handler must be replayed.
    pub(crate) fn returned(&self, result: String) -> bool {
        let mut plan = self.lock();
        match &plan.returned {
            _ if !plan.replays => false,
            None => {
                plan.returned = Some(result);
                true
            }
            Some(before) => {
                let differs = *before != result;
                plan.differs = differs.then_some(result);
                false
            }
        }
    }

    /// Returns the number of recorded entries, the unused keys, and whether the planned crash
    /// happened.
    pub(crate) fn report(&self) -> (usize, Vec<String>, bool) {
        let plan = self.lock();
        (plan.recorded, plan.unused.clone(), plan.happened)
    }

    /// Returns all recorded keys.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.lock().keys.clone()
    }

    /// Sets the planned crash on the journal of a new round.
    pub(crate) fn begin(&self, journal: &Journal) {
        let plan = self.lock();
        let crash = match &plan.crash {
            // The plan counts the entries of all rounds, and this journal those of the new round.
            Some(CrashPoint::AfterRecords(count)) if *count > plan.recorded => {
                Some(CrashPoint::AfterRecords(count - plan.recorded))
            }
            Some(CrashPoint::After(key)) if !plan.happened => Some(CrashPoint::After(key.clone())),
            _ => None,
        };
        if let Some(crash) = crash {
            journal.crash(crash);
        }
    }

    /// Records that the run reached the planned point. Returns whether the run is cancelled there
    /// instead of crashing.
    pub(crate) fn reached(&self) -> bool {
        let mut plan = self.lock();
        plan.happened = true;
        plan.cancels
    }

    /// Stores the journal of an ended call.
    pub(crate) fn finished(&self, call: &Arc<Call>, journal: JournalSnapshot) {
        self.lock().ended = Some((Arc::clone(call), journal));
    }

    /// Collects the counts and keys of an ended round.
    pub(crate) fn ended(&self, journal: &Journal, unused: &[String]) {
        let mut plan = self.lock();
        // Entries are not counted again during a replay.
        if plan.returned.is_none() {
            plan.recorded += journal.recorded();
        }
        plan.unused = unused.to_vec();
        plan.keys = journal.snapshot().entries.into_keys().collect();
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
