//! Capacities: named numbers of permits that runs share, with a fair queue of waiting tasks and
//! calls.
//!
//! A task that finds no permit does not wait in memory: its run ends, the store keeps the task, and
//! the task ID waits here. A released permit goes to the next caller in turn, and the engine claims
//! that caller's first task. A permit may outlive its run: a job holds its permit until its process
//! exits.

use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use tokio::sync::oneshot;

use crate::{fair_queue::FairQueue, store::TaskId};

/// Maximum number of waiting tasks per caller. A task above the limit only retries periodically.
const MAX_WAITING_PER_CALLER: usize = 1_024;

/// Maximum number of waiting tasks of all callers.
const MAX_WAITING: usize = 65_536;

/// Delay after which a task that waits for a permit retries without a grant. Another replica may
/// have a permit, or this process may have restarted. The delay grows with the number of waiters,
/// so that many of them do not overload the store.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
const LONGER_EACH: Duration = Duration::from_millis(100);
const MAX_LOOK_AGAIN: Duration = Duration::from_secs(600);

/// A limit on how many operations run at the same time, such as the jobs of a tool.
///
/// Clones share the same permits. Waiting callers take turns: each turn grants one permit to the
/// oldest waiter of a caller. Waiting calls and waiting tasks take turns as well, so that many
/// waiting tasks delay a call by one turn at most.
#[derive(Clone)]
pub struct Capacity(Arc<Inner>);

struct Inner {
    name: String,
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
}

struct State {
    max: usize,
    /// Number of permits that are held or granted.
    used: usize,
    /// Tasks whose permit waits for their next run.
    granted: HashSet<TaskId>,
    waiting: WaitQueue,
}

/// Waiting tasks and calls.
#[derive(Default)]
struct WaitQueue {
    /// Calls that wait in memory.
    calls: FairQueue<oneshot::Sender<Permit>>,
    /// Tasks in the store, and the engine that claims them.
    stored: FairQueue<(TaskId, Weak<dyn Claimant>)>,
    /// IDs of the waiting tasks. A queued task whose ID is missing here is skipped.
    tasks: HashSet<TaskId>,
    /// Whether the last grant went to a call.
    was_call: bool,
}

enum Waiter {
    /// A task in the store, and the engine that claims it.
    Task(TaskId, Weak<dyn Claimant>),
    /// A call that waits in memory.
    Call(oneshot::Sender<Permit>),
}

/// The right to run one operation under a [`Capacity`]. Dropping the permit releases it.
#[must_use = "dropping the permit releases it"]
pub struct Permit(Option<Capacity>);

/// Claims tasks that have been granted a permit.
pub(crate) trait Claimant: Send + Sync {
    /// Claims the task of a grant soon. Returns `false` if the engine no longer claims tasks.
    fn take_grant(&self, grant: &dyn Fn() -> Grant) -> bool;
}

/// A permit that is reserved for the next run of a task. Dropping the grant releases an unused
/// permit.
pub(crate) struct Grant {
    capacity: Capacity,
    task: TaskId,
}

impl Capacity {
    /// Creates a capacity of `max` permits. Error messages to callers contain the name.
    pub fn new(name: impl Into<String>, max: usize) -> Self {
        let (granted, waiting) = (HashSet::new(), WaitQueue::default());
        let state = Mutex::new(State { max, used: 0, granted, waiting });
        Self(Arc::new(Inner { name: name.into(), state }))
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the total number of permits.
    pub fn max(&self) -> usize {
        self.lock().max
    }

    /// Changes the total number of permits. Held permits stay valid.
    pub fn set_max(&self, max: usize) {
        self.lock().max = max;
        self.grant_next();
    }

    /// Returns the number of held permits.
    pub fn used(&self) -> usize {
        self.lock().used
    }

    /// Returns the number of tasks and calls that wait for a permit.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.count()
    }

    /// Takes a permit if one is free.
    pub fn try_acquire(&self) -> Option<Permit> {
        // No permit is free while a task or call waits: a released permit goes to the next waiter.
        self.lock().take().then(|| Permit(Some(self.clone())))
    }

    /// Takes a permit even if none is free, for an operation that already runs. An example is a job
    /// that outlived the process that started it.
    pub fn force_acquire(&self) -> Permit {
        self.lock().used += 1;
        Permit(Some(self.clone()))
    }

    /// Waits in memory for a permit. Callers take turns.
    pub async fn acquire(&self, caller: &str) -> Permit {
        loop {
            let (sender, permit) = oneshot::channel();
            {
                let mut state = self.lock();
                if state.take() {
                    return Permit(Some(self.clone()));
                }
                state.waiting.push_call(caller, sender);
            }
            // An error means that the queue was dropped with the sender, so the call queues again.
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }

    /// Takes the permit that is granted to a task, or a free one.
    pub fn acquire_for(&self, task: &TaskId) -> Option<Permit> {
        let mut state = self.lock();
        let has_permit = state.granted.remove(task) || state.take();
        if has_permit {
            state.waiting.tasks.remove(task);
        }
        drop(state);
        has_permit.then(|| Permit(Some(self.clone())))
    }

    /// Returns the delay after which a task that starts to wait retries without a grant.
    pub(crate) fn look_again(&self) -> Duration {
        let waiting = u32::try_from(self.lock().waiting.count()).unwrap_or(u32::MAX);
        LOOK_AGAIN.saturating_add(LONGER_EACH.saturating_mul(waiting)).min(MAX_LOOK_AGAIN)
    }

    /// Queues a task that is in the store. `engine` claims the task when a permit is granted.
    pub(crate) fn wait(&self, principal: &str, task: TaskId, engine: Weak<dyn Claimant>) {
        let mut state = self.lock();
        let waiting = &mut state.waiting;
        let has_room = waiting.count() < MAX_WAITING
            && waiting.stored.count_of(principal) < MAX_WAITING_PER_CALLER;
        // A task that retried without a permit keeps its position in the queue.
        if has_room && waiting.tasks.insert(task.clone()) {
            waiting.stored.push(principal, (task, engine));
        }
        drop(state);
        self.grant_next();
    }

    /// Grants the free permits to waiting tasks and calls.
    fn grant_next(&self) {
        loop {
            let mut state = self.lock();
            if state.used >= state.max {
                return;
            }
            let Some(waiter) = state.waiting.next() else { return };
            state.used += 1;
            if let Waiter::Task(task, _) = &waiter {
                state.granted.insert(task.clone());
            }
            drop(state);
            let refused = match waiter {
                Waiter::Task(task, engine) => {
                    let told = engine.upgrade().is_some_and(|engine| {
                        let grant = || Grant { capacity: self.clone(), task: task.clone() };
                        engine.take_grant(&grant)
                    });
                    !told && self.lock().granted.remove(&task)
                }
                Waiter::Call(sender) => match sender.send(Permit(Some(self.clone()))) {
                    Ok(()) => false,
                    // The call was dropped. Dropping the permit here would call this function
                    // recursively.
                    Err(mut permit) => permit.0.take().is_some(),
                },
            };
            if refused {
                self.lock().used -= 1;
            }
        }
    }

    fn release(&self) {
        {
            let mut state = self.lock();
            state.used = state.used.saturating_sub(1);
        }
        self.grant_next();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts one more held permit if one is free. Returns whether it did.
    fn take(&mut self) -> bool {
        let is_free = self.used < self.max;
        self.used += usize::from(is_free);
        is_free
    }
}

impl WaitQueue {
    fn count(&self) -> usize {
        self.calls.len() + self.stored.len()
    }

    fn push_call(&mut self, caller: &str, sender: oneshot::Sender<Permit>) {
        // Removes dropped calls, so that they do not accumulate.
        self.calls.retain(caller, |sender| !sender.is_closed());
        self.calls.push(caller, sender);
    }

    /// Removes the next waiter. Calls and tasks take turns if both wait.
    fn next(&mut self) -> Option<Waiter> {
        let call = |queue: &mut Self| queue.calls.pop().map(Waiter::Call);
        let waiter = match self.was_call {
            true => self.next_task().or_else(|| call(self)),
            false => call(self).or_else(|| self.next_task()),
        };
        self.was_call = matches!(waiter, Some(Waiter::Call(_)));
        waiter
    }

    fn next_task(&mut self) -> Option<Waiter> {
        loop {
            let (task, engine) = self.stored.pop()?;
            // Otherwise the task already has a permit.
            if self.tasks.remove(&task) {
                return Some(Waiter::Task(task, engine));
            }
        }
    }
}

impl Permit {
    /// Returns the capacity that the permit belongs to.
    pub fn capacity(&self) -> Option<&Capacity> {
        self.0.as_ref()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(capacity) = self.0.take() {
            capacity.release();
        }
    }
}

impl Grant {
    pub(crate) fn task(&self) -> &TaskId {
        &self.task
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let is_left = self.capacity.lock().granted.remove(&self.task);
        if is_left {
            self.capacity.release();
        }
    }
}

impl PartialEq for Capacity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Capacity {}

impl fmt::Debug for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Capacity")
            .field("name", &self.0.name)
            .field("max", &state.max)
            .field("used", &state.used)
            .field("waiting", &state.waiting.count())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&self.0.as_ref().map(Capacity::name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::Future,
        pin::pin,
        sync::{Arc, Mutex, Weak},
        task::{Context, Poll, Waker},
    };

    use super::{Capacity, Claimant, Grant, MAX_WAITING_PER_CALLER};
    use crate::store::TaskId;

    fn poll<F: Future>(work: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        work.poll(&mut Context::from_waker(Waker::noop()))
    }

    struct Nobody;

    impl Claimant for Nobody {
        fn take_grant(&self, _: &dyn Fn() -> Grant) -> bool {
            false
        }
    }

    fn no_engine() -> Weak<dyn Claimant> {
        Weak::<Nobody>::new()
    }

    #[test]
    fn released_permit_goes_to_callers_in_turn() {
        let capacity = Capacity::new("jobs", 1);
        let mut held = capacity.try_acquire();
        assert!(held.is_some() && capacity.try_acquire().is_none());
        let callers = ["ann", "ann", "ann", "bob"];
        let mut waiting: Vec<_> = callers
            .iter()
            .enumerate()
            .map(|(number, caller)| (number, Box::pin(capacity.acquire(caller))))
            .collect();
        assert!(waiting.iter_mut().all(|(_, work)| poll(work.as_mut()).is_pending()));
        let mut order = Vec::new();
        while !waiting.is_empty() {
            held = None;
            waiting.retain_mut(|(number, work)| match poll(work.as_mut()) {
                Poll::Pending => true,
                Poll::Ready(permit) => {
                    order.push(*number);
                    held = Some(permit);
                    false
                }
            });
            assert!(held.is_some(), "a released permit goes to a waiter");
        }
        assert_eq!(order, [0, 3, 1, 2], "bob gets a permit before ann's second call");
    }

    #[test]
    fn waiting_calls_and_tasks_take_turns() {
        struct Taker(Mutex<Vec<Grant>>);

        impl Claimant for Taker {
            fn take_grant(&self, grant: &dyn Fn() -> Grant) -> bool {
                self.0.lock().unwrap().push(grant());
                true
            }
        }

        let capacity = Capacity::new("jobs", 1);
        let held = capacity.try_acquire().unwrap();
        let taker = Arc::new(Taker(Mutex::default()));
        let engine: Weak<dyn Claimant> = Arc::downgrade(&taker) as _;
        for number in 0..3 {
            capacity.wait("ann", TaskId::new(number.to_string()), engine.clone());
        }
        let mut first = Box::pin(capacity.acquire("bob"));
        let mut second = Box::pin(capacity.acquire("bob"));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        drop(held);
        let Poll::Ready(permit) = poll(first.as_mut()) else {
            panic!("the call comes before the tasks that waited longer")
        };
        drop(permit);
        assert!(poll(second.as_mut()).is_pending(), "a task comes before the second call");
        let grant = taker.0.lock().unwrap().pop();
        assert_eq!(grant.as_ref().map(|grant| grant.task().as_str()), Some("0"));
        drop(grant);
        assert!(poll(second.as_mut()).is_ready());
    }

    #[test]
    fn permit_of_dropped_call_goes_to_next_waiter() {
        let capacity = Capacity::new("jobs", 1);
        let held = capacity.force_acquire();
        let mut gone = Box::pin(capacity.acquire("ann"));
        let mut stays = pin!(capacity.acquire("ann"));
        assert!(poll(gone.as_mut()).is_pending() && poll(stays.as_mut()).is_pending());
        drop(gone);
        drop(held);
        assert!(poll(stays.as_mut()).is_ready());
        assert_eq!((capacity.used(), capacity.waiting()), (0, 0));
    }

    #[test]
    fn waiting_tasks_are_bounded_per_caller_and_dropped_without_engine() {
        let capacity = Capacity::new("jobs", 1);
        let held = capacity.try_acquire().unwrap();
        for number in 0..2 * MAX_WAITING_PER_CALLER {
            capacity.wait("ann", TaskId::new(number.to_string()), no_engine());
        }
        assert_eq!(capacity.waiting(), MAX_WAITING_PER_CALLER);
        drop(held);
        assert_eq!((capacity.used(), capacity.waiting()), (0, 0));
        capacity.set_max(0);
        assert!(capacity.try_acquire().is_none() && capacity.force_acquire().capacity().is_some());
    }
}
