//! What the author's test kit wants to happen to journals, and to know about them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlive_protocol::{Call, Clock};
use outlive_tasks::{CrashPoint, Journal, JournalSnapshot};

use crate::server::env::test_clock::TestClock;

/// Watches the journals of a server under test, one call at a time.
#[derive(Debug)]
pub(crate) struct TestHooks {
    plan: Mutex<Plan>,
    clock: Arc<TestClock>,
}

#[derive(Debug, Default)]
struct Plan {
    crash: Option<CrashPoint>,
    /// Records in the rounds that have ended.
    recorded: usize,
    unused: Vec<String>,
    keys: Vec<String>,
    happened: bool,
    /// Whether the task is cancelled at `crash`, in place of a crash.
    cancels: bool,
    /// The call that has ended, and its journal.
    ended: Option<(Arc<Call>, JournalSnapshot)>,
    /// Whether the handler runs once more over its whole journal when it has returned.
    replays: bool,
    /// What it returned before it did.
    returned: Option<String>,
    /// What it returned then, if that is something else.
    differs: Option<String>,
}

impl TestHooks {
    /// Returns hooks, and puts a clock whose time can be skipped before the server's.
    pub(crate) fn install(server_clock: &mut Arc<dyn Clock>) -> Arc<Self> {
        let clock = Arc::new(TestClock::new(Arc::clone(server_clock)));
        *server_clock = clock.clone();
        Arc::new(Self { plan: Mutex::default(), clock })
    }

    /// Prepares the next call, which is cancelled as a task is when this key is recorded.
    pub(crate) fn plan_cancel(&self, key: String) {
        let crash = Some(CrashPoint::After(key));
        *self.lock() = Plan { crash, cancels: true, ..Plan::default() };
    }

    /// Returns the call that has ended, and its journal.
    pub(crate) fn ended_call(&self) -> Option<(Arc<Call>, JournalSnapshot)> {
        self.lock().ended.clone()
    }

    /// Lets the time pass that a timer waits for.
    pub(crate) fn skip(&self, millis: u64) {
        self.clock.skip(millis);
    }

    /// Prepares the next call. With `replays` its handler runs once more over its journal when it has
    /// returned, and must return the same.
    pub(crate) fn plan(&self, crash: Option<CrashPoint>, replays: bool) {
        *self.lock() = Plan { crash, replays, ..Plan::default() };
    }

    /// What the handler returned, and what it returned over its own journal, if they differ.
    pub(crate) fn differs(&self) -> Option<(String, String)> {
        let plan = self.lock();
        plan.returned.clone().zip(plan.differs.clone())
    }

    /// The handler has returned this: whether it is to run once more.
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

    /// How much was recorded, what was not used, and whether the crash has happened.
    pub(crate) fn report(&self) -> (usize, Vec<String>, bool) {
        let plan = self.lock();
        (plan.recorded, plan.unused.clone(), plan.happened)
    }

    /// Everything that was recorded.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.lock().keys.clone()
    }

    /// A round begins over this journal.
    pub(crate) fn begin(&self, journal: &Journal) {
        let plan = self.lock();
        let crash = match &plan.crash {
            // Each round counts its own records; what earlier ones have recorded counts too.
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

    /// The run has come to the planned place. Returns whether it is cancelled there, and not lost.
    pub(crate) fn reached(&self) -> bool {
        let mut plan = self.lock();
        plan.happened = true;
        plan.cancels
    }

    /// A call has ended, with this journal.
    pub(crate) fn finished(&self, call: &Arc<Call>, journal: JournalSnapshot) {
        self.lock().ended = Some((Arc::clone(call), journal));
    }

    /// A round has ended over this journal.
    pub(crate) fn ended(&self, journal: &Journal, unused: &[String]) {
        let mut plan = self.lock();
        // A replay counts nothing twice.
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
