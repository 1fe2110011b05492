//! Drives one running task: polls its handler, writes its journal, reads its inbox.
//!
//! [`Driver::next_event`] waits for the next event, and [`Driver::apply`] reacts to it. A process
//! may have many long-lived drivers, so the futures of rare operations are boxed.

use std::{
    future::{Future, poll_fn},
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    sync::futures::Notified,
    time::{Instant, Sleep, sleep, sleep_until},
};

use super::{
    events::EngineEvent,
    leased::{InboxRead, LeasedTask, Written, internal, over_bytes, reduced},
    runner::{ReduceResult, TaskRun, Work},
    state::Signals,
};
use crate::{
    Journal,
    capacity::Capacity,
    idle::Watch,
    journal::YieldToReplica,
    store::{Changes, CleanupState, TaskOutcome, Transition, UnixMillis},
    time::{millis, wall_clock},
};

/// Delay before the driver retries a failed read of the inbox.
const RETRY_INBOX_AFTER: Duration = Duration::from_secs(1);

/// Reason why a driver has stopped.
pub(super) enum Exit {
    /// The task or its cleanup waits for a worker.
    Waiting,
    /// The parked task waits for a permit.
    NoPermit(Capacity),
    /// The task has ended, or another worker has its lease.
    Over,
}

/// An event that a driver reacts to.
enum DriveEvent {
    /// The store returned the inbox of the task.
    Inbox(InboxRead),
    /// The handler has ended.
    Done(TaskOutcome),
    /// The journal has changes to write.
    Write(Changes),
    /// The write has ended.
    Written(Written),
    /// A client, an operator or another system may have changed the task.
    Changed,
    /// The lease is lost.
    LeaseLost,
    /// The run has been idle long enough to be parked.
    Park,
    /// The handler did not stop within its grace period after the cancellation.
    GraceOver,
    /// This worker stops, and another worker can continue the task.
    Release,
    /// The run yields to another replica, or to a later time.
    Yield(YieldToReplica),
}

/// Instruction to stop a driver.
enum Stop {
    LeaseLost,
    /// The handler has ended.
    Done(TaskOutcome),
    /// The run is dropped, and the task ends with this outcome.
    End(TaskOutcome),
    /// The run is dropped, and the task is parked.
    Park {
        due: Option<UnixMillis>,
        event: EngineEvent<'static>,
        capacity: Option<Capacity>,
    },
}

/// A started write.
type Commit<'a> = Pin<Box<dyn Future<Output = Written> + Send + 'a>>;

type Timer = Option<Pin<Box<Sleep>>>;

/// State of one running task.
struct Driver<'a, 'p> {
    task: LeasedTask<'a>,
    run: TaskRun,
    /// Records whether the handler was woken.
    watch: Arc<Watch>,
    /// Waker of the handler.
    waker: Waker,
    commit: Option<Commit<'a>>,
    /// Whether to read the inbox.
    look: bool,
    signals: &'a Signals,
    changed: Pin<&'p mut Notified<'a>>,
    lost: Pin<&'p mut Notified<'a>>,
    stop: Pin<&'p mut (dyn Future<Output = ()> + Send + 'p)>,
    /// Whether `stop` is ready.
    stops: bool,
    /// Fires when an idle run is parked.
    parking: Timer,
    /// Fires when a cancelled run is dropped.
    grace: Timer,
    /// Fires when held-back changes are written.
    pacing: Timer,
    /// Fires when the driver retries to read the inbox.
    retry_inbox: Timer,
}

/// Drives a task until it ends, is parked, or loses its lease. `look` states whether the task may
/// have changed before it was registered.
pub(super) async fn drive(
    task: LeasedTask<'_>,
    run: TaskRun,
    signals: &Signals,
    look: bool,
) -> Exit {
    run.journal.begin_writing();
    if task.engine.config.record_durations {
        run.journal.record_durations();
    }
    let mut stopping = task.engine.stopping.subscribe();
    let watch = poll_fn(|cx| Poll::Ready(Watch::new(cx.waker()))).await;
    // Created once, because a new future for each poll would cost more than most polls.
    let changed = pin!(signals.changed.notified());
    let lost = pin!(signals.lost.notified());
    let stop = pin!(async move { drop(stopping.wait_for(|stopping| *stopping).await) });
    let mut driver = Driver {
        task,
        run,
        waker: Waker::from(Arc::clone(&watch)),
        watch,
        commit: None,
        look,
        signals,
        changed,
        lost,
        stop,
        stops: false,
        parking: None,
        grace: None,
        pacing: None,
        retry_inbox: None,
    };
    loop {
        let event = driver.next_event().await;
        if let ControlFlow::Break(stop) = driver.apply(event) {
            return Box::pin(driver.leave(stop)).await;
        }
    }
}

impl Driver<'_, '_> {
    async fn next_event(&mut self) -> DriveEvent {
        if self.look && self.commit.is_none() {
            self.look = false;
            // The journal does not wake a handler that reads its responses itself.
            self.waker.wake_by_ref();
            return DriveEvent::Inbox(Box::pin(self.task.read_inbox(&self.run.journal)).await);
        }
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Polls all sources of events, in the order of their priority.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<DriveEvent> {
        self.run.journal.set_writer(cx.waker());
        self.watch.set_owner(cx.waker());
        if self.lost.as_mut().poll(cx).is_ready() {
            return Poll::Ready(DriveEvent::LeaseLost);
        }
        if let Some(commit) = &mut self.commit
            && let Poll::Ready(written) = commit.as_mut().poll(cx)
        {
            return Poll::Ready(DriveEvent::Written(written));
        }
        self.stops = self.stops || self.stop.as_mut().poll(cx).is_ready();
        if self.stops && self.run.resumes && self.run.journal.is_between_steps() {
            return Poll::Ready(DriveEvent::Release);
        }
        if self.watch.take() {
            self.parking = None;
            let work = &mut self.run.work;
            if let Poll::Ready(outcome) = poll_work(work, &mut Context::from_waker(&self.waker)) {
                return Poll::Ready(DriveEvent::Done(outcome));
            }
        }
        if self.commit.is_none()
            && let Poll::Ready(event) = self.poll_journal(cx)
        {
            return Poll::Ready(event);
        }
        if self.poll_changed(cx).is_ready() {
            return Poll::Ready(DriveEvent::Changed);
        }
        // A cancelled run stays in memory, because only a run in memory can be dropped after its
        // grace.
        match self.grace {
            Some(_) => self.poll_grace(cx),
            None => self.poll_parking(cx),
        }
    }

    /// Polls the journal while no write is in progress.
    fn poll_journal(&mut self, cx: &mut Context<'_>) -> Poll<DriveEvent> {
        let journal = &self.run.journal;
        if let Some(changes) = journal.take_changes() {
            return Poll::Ready(DriveEvent::Write(changes));
        }
        if let Some(asked) = journal.yields()
            && journal.is_between_steps()
        {
            return Poll::Ready(DriveEvent::Yield(asked));
        }
        if let Some(wait) = journal.held_back() {
            let due = self.pacing.get_or_insert_with(|| Box::pin(sleep(wait)));
            if due.as_mut().poll(cx).is_ready() {
                self.pacing = None;
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }

    /// Polls for change notifications and for the retry of the inbox.
    fn poll_changed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let retries = self.retry_inbox.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready());
        if self.changed.as_mut().poll(cx).is_ready() {
            self.changed.set(self.signals.changed.notified());
            return Poll::Ready(());
        }
        if retries { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Polls whether to drop a cancelled run: its grace is over, or it has been polled since the
    /// cancellation and can stop immediately.
    fn poll_grace(&mut self, cx: &mut Context<'_>) -> Poll<DriveEvent> {
        let is_over = self.grace.as_mut().is_some_and(|end| end.as_mut().poll(cx).is_ready());
        let is_idle = self.commit.is_none() && !self.look && !self.watch.is_woken();
        match is_over || is_idle && self.run.journal.can_stop_at_once() {
            true => Poll::Ready(DriveEvent::GraceOver),
            false => Poll::Pending,
        }
    }

    /// Polls whether the run has been idle long enough and can be parked.
    fn poll_parking(&mut self, cx: &mut Context<'_>) -> Poll<DriveEvent> {
        let (journal, config) = (&self.run.journal, &self.task.engine.config);
        let can_be_parked = journal.can_be_parked();
        if can_be_parked && !self.watch.is_woken() && journal.refusal().is_some() {
            return Poll::Ready(DriveEvent::Park);
        }
        if !can_be_parked {
            self.parking = None;
            return Poll::Pending;
        }
        // The driver does not watch the deadlines of input requests. The store watches them and
        // makes the task due again.
        let deadline = journal.next_deadline().map(|due| due.saturating_sub(wall_clock()));
        let wait = deadline.map_or(config.park_after, |millis| {
            config.park_after.min(Duration::from_millis(millis))
        });
        let end = Instant::now() + wait;
        let timer = self.parking.get_or_insert_with(|| Box::pin(sleep_until(end)));
        timer.as_mut().poll(cx).map(|()| DriveEvent::Park)
    }

    /// Reacts to an event.
    fn apply(&mut self, event: DriveEvent) -> ControlFlow<Stop> {
        let journal = &self.run.journal;
        match event {
            DriveEvent::Inbox(read) => return self.apply_inbox(&read),
            DriveEvent::Write(changes) => {
                let commit = self.task.commit(changes, Transition::Continue);
                self.commit = Some(Box::pin(commit));
            }
            DriveEvent::Written(Written::All) => {
                self.commit = None;
                journal.written();
                self.task.engine.notify_readers(&self.task.lease.task);
            }
            DriveEvent::Written(Written::WithoutGrowth(limit)) => {
                self.commit = None;
                journal.refuse(limit);
            }
            DriveEvent::Changed => {
                self.look = true;
                self.retry_inbox = None;
            }
            DriveEvent::LeaseLost | DriveEvent::Written(Written::LeaseLost) => {
                return ControlFlow::Break(Stop::LeaseLost);
            }
            DriveEvent::Done(outcome) => return ControlFlow::Break(Stop::Done(outcome)),
            DriveEvent::GraceOver => {
                return ControlFlow::Break(Stop::End(TaskOutcome::Cancelled));
            }
            DriveEvent::Park => return ControlFlow::Break(Stop::idle(journal)),
            DriveEvent::Release => return ControlFlow::Break(Stop::release(Some(0))),
            DriveEvent::Yield(asked) => return ControlFlow::Break(Stop::yielded(asked)),
        }
        ControlFlow::Continue(())
    }

    fn apply_inbox(&mut self, read: &InboxRead) -> ControlFlow<Stop> {
        match read {
            InboxRead::LeaseLost => return ControlFlow::Break(Stop::LeaseLost),
            InboxRead::Cancelled if self.grace.is_none() => {
                (self.run.cancel)();
                self.grace = Some(Box::pin(sleep(self.task.engine.config.cancel_grace)));
            }
            InboxRead::Cancelled | InboxRead::Responses => {}
            // A change is notified only once, and the missed change may be a cancellation.
            InboxRead::Failed => self.retry_inbox = Some(Box::pin(sleep(RETRY_INBOX_AFTER))),
        }
        ControlFlow::Continue(())
    }

    /// Drops the run, and writes the transition of its task.
    async fn leave(self, stop: Stop) -> Exit {
        let Self { task, run, commit, .. } = self;
        let TaskRun { journal, work, cleans_up, reduce, .. } = run;
        match stop {
            Stop::LeaseLost => {
                journal.lose_lease();
                drop_run(&journal, work);
                lose(task, cleans_up).await;
            }
            Stop::Done(outcome) => end(task, &journal, commit, outcome, (cleans_up, reduce)).await,
            Stop::End(outcome) => {
                drop_run(&journal, work);
                end(task, &journal, commit, outcome, (cleans_up, None)).await;
            }
            Stop::Park { due, event, capacity } => {
                let then =
                    Transition::Park { due_at: due, responses_seen: journal.count_responses() };
                let is_parked = task.commit(Changes::default(), then).await.is_leased();
                if !is_parked {
                    journal.lose_lease();
                }
                drop_run(&journal, work);
                match is_parked {
                    true => task.observe(event),
                    false => make_cleanup_due(task, cleans_up).await,
                }
                return capacity.filter(|_| is_parked).map_or(Exit::Waiting, Exit::NoPermit);
            }
        }
        // The cleanup waits for a worker.
        if cleans_up { Exit::Waiting } else { Exit::Over }
    }
}

impl Stop {
    /// Parks the task of an idle run.
    fn idle(journal: &Journal) -> Self {
        match journal.refusal() {
            // The store may have rejected an input request or timer, and then no event would resume
            // the task.
            Some(limit) => Self::End(TaskOutcome::Error(over_bytes(limit))),
            None => {
                let (due, event) = (journal.next_due(), EngineEvent::Parked);
                Self::Park { due, event, capacity: None }
            }
        }
    }

    /// Releases the task to another worker.
    fn release(due: Option<UnixMillis>) -> Self {
        Self::Park { due, event: EngineEvent::Released, capacity: None }
    }

    /// Parks the task of a run that yields.
    fn yielded(asked: YieldToReplica) -> Self {
        let due_after = |delay| Some(wall_clock().saturating_add(millis(delay)));
        match asked.capacity {
            Some(capacity) => {
                let due = due_after(capacity.look_again());
                Self::Park { due, event: EngineEvent::Parked, capacity: Some(capacity) }
            }
            None => Self::release(due_after(asked.retry_after.unwrap_or_default())),
        }
    }
}

/// Drops a run. Its destructors withdraw no input request.
fn drop_run(journal: &Journal, work: Work) {
    journal.close();
    // Destructors of a handler may panic.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
}

/// Reports the lost lease after the run was dropped.
async fn lose(task: LeasedTask<'_>, cleans_up: bool) {
    task.observe(EngineEvent::LeaseLost);
    make_cleanup_due(task, cleans_up).await;
}

/// Makes the cleanup of a task due after its lease is lost. If the task was ended by a client, the
/// cleanup had to wait until this worker dropped the run.
async fn make_cleanup_due(task: LeasedTask<'_>, cleans_up: bool) {
    if cleans_up {
        task.set_cleanup(CleanupState::Due).await;
    }
}

/// Writes the outcome together with the last records of the run.
async fn end(
    task: LeasedTask<'_>,
    journal: &Journal,
    commit: Option<Commit<'_>>,
    mut outcome: TaskOutcome,
    (cleans_up, reduce): (bool, Option<ReduceResult>),
) {
    if let Some(commit) = commit {
        match commit.await {
            Written::All => journal.written(),
            Written::WithoutGrowth(limit) => journal.refuse(limit),
            Written::LeaseLost => return lose(task, cleans_up).await,
        }
    }
    journal.written();
    if let (Some(limit), TaskOutcome::Result(_)) = (journal.refusal(), &outcome)
        && journal.lost_segments()
    {
        // A result must not be stored if some of its segments are missing.
        outcome = reduced(&outcome, &[], limit, reduce.as_ref());
    }
    let changes = journal.take_changes().unwrap_or_default();
    let then = task.engine.config.over(outcome, journal.is_quarantined());
    if !task.commit_end(changes, then, reduce).await.is_leased() {
        make_cleanup_due(task, cleans_up).await;
    }
}

/// Polls a handler. A panic ends only the task of that handler.
fn poll_work(work: &mut Work, cx: &mut Context<'_>) -> Poll<TaskOutcome> {
    match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(_) => {
            tracing::error!("task handler panicked");
            Poll::Ready(TaskOutcome::Error(internal("internal error".to_owned())))
        }
    }
}
