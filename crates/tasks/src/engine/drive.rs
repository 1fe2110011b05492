//! One running task: polls its work, writes what it records, brings it the answers.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use outlive_wire::{ErrorObject, code};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::{Allowance, Capacity, EngineEvent, Inner, Signals, TaskRun, Work};
use crate::{
    Journal, JournalError, YieldToReplica,
    idle::Watch,
    store::{Changes, Charge, CleanupState, Lease, StoreError, TaskOutcome, Transition},
    time::{millis, wall_clock},
};

/// When answers are looked for again that could not be read.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// What a driver has to see to.
enum Event {
    Done(TaskOutcome),
    Write(Changes),
    Written(Wrote),
    Changed,
    Lost,
    /// It has waited for long enough to wait without a worker.
    Park,
    /// It was asked to stop, and has had time for it.
    GraceOver,
    /// This worker stops, and another one can go on.
    HandOver,
    /// The run wants to go on elsewhere, or later.
    Shed(YieldToReplica),
}

/// A write on its way.
type Commit<'a> = Pin<Box<dyn Future<Output = Wrote> + Send + 'a>>;

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrote {
    /// It is in the store.
    All,
    /// The principal has as many bytes stored as it may by this limit. What stores none is in the
    /// store.
    NotAll(&'static str),
    /// The lease is lost.
    Nothing,
}

impl Wrote {
    /// Whether the lease is not lost.
    pub(super) fn is_held(self) -> bool {
        self != Self::Nothing
    }
}

/// A task that this worker has.
#[derive(Clone, Copy)]
pub(super) struct Held<'a> {
    pub(super) inner: &'a Inner,
    pub(super) lease: &'a Lease,
    pub(super) principal: &'a str,
}

/// How a driver has left its task.
pub(super) enum Left {
    /// It waits without a worker, or something after it does.
    Waiting,
    /// It waits without a worker for a permit.
    NoPermit(Capacity),
    /// There is nothing to do any more, or others do it.
    Over,
}

impl Left {
    /// It has ended, or is lost.
    fn ended(cleans_up: bool) -> Self {
        if cleans_up { Self::Waiting } else { Self::Over }
    }
}

/// Runs a task until it ends, waits without a worker, or is lost. `look` says whether something may
/// have been done to it before anybody listened.
///
/// There may be many of these for a long time: what a run does once or never has no room in it.
pub(super) async fn drive(held: Held<'_>, run: TaskRun, signals: &Signals, mut look: bool) -> Left {
    let inner = held.inner;
    let TaskRun { journal, mut work, cancel, resumes, cleans_up } = run;
    journal.begin_writing();
    let mut stopping = inner.stopping.subscribe();
    let woken = poll_fn(|cx| Poll::Ready(Watch::new(cx.waker()))).await;
    let waker = Waker::from(Arc::clone(&woken));
    let mut commit: Option<Commit<'_>> = None;
    let mut parking: Option<Pin<Box<Sleep>>> = None;
    let mut grace: Option<Pin<Box<Sleep>>> = None;
    let mut pacing: Option<Pin<Box<Sleep>>> = None;
    let mut again: Option<Pin<Box<Sleep>>> = None;
    // Waited for all the time: to begin anew at each turn would cost more than most turns do.
    let mut changed = pin!(signals.changed.notified());
    let mut lost = pin!(signals.lost.notified());
    let mut stop = pin!(stopping.wait_for(|stopping| *stopping));
    let mut stops = false;
    loop {
        if look && commit.is_none() {
            look = false;
            // A handler that asks by itself does not wait for its answers: it is begun again.
            waker.wake_by_ref();
            match Box::pin(held.news(&journal)).await {
                News::Lost => {
                    give_up(&journal, work);
                    Box::pin(held.lost(cleans_up)).await;
                    return Left::ended(cleans_up);
                }
                News::Cancelled if grace.is_none() => {
                    cancel();
                    grace = Some(Box::pin(sleep(inner.config.cancel_grace)));
                }
                News::Cancelled | News::Answers => {}
                // Nobody tells twice, and it may have been asked to stop.
                News::Unread => again = Some(Box::pin(sleep(LOOK_AGAIN))),
            }
        }
        let event = poll_fn(|cx| {
            journal.set_writer(cx.waker());
            woken.set_owner(cx.waker());
            if lost.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Lost);
            }
            if let Some(writing) = &mut commit
                && let Poll::Ready(wrote) = writing.as_mut().poll(cx)
            {
                return Poll::Ready(Event::Written(wrote));
            }
            stops = stops || stop.as_mut().poll(cx).is_ready();
            if stops && resumes && journal.is_between_steps() {
                return Poll::Ready(Event::HandOver);
            }
            if woken.take() {
                parking = None;
                if let Poll::Ready(outcome) = poll_work(&mut work, &mut Context::from_waker(&waker))
                {
                    return Poll::Ready(Event::Done(outcome));
                }
            }
            if commit.is_none()
                && let Some(changes) = journal.take_changes()
            {
                return Poll::Ready(Event::Write(changes));
            }
            if commit.is_none()
                && let Some(shed) = journal.wants_to_shed()
                && journal.is_between_steps()
            {
                return Poll::Ready(Event::Shed(shed));
            }
            if let Some(wait) = journal.held_back().filter(|_| commit.is_none()) {
                let due = pacing.get_or_insert_with(|| Box::pin(sleep(wait)));
                if due.as_mut().poll(cx).is_ready() {
                    pacing = None;
                    cx.waker().wake_by_ref();
                }
            }
            let looks = again.as_mut().is_some_and(|again| again.as_mut().poll(cx).is_ready());
            if changed.as_mut().poll(cx).is_ready() {
                changed.set(signals.changed.notified());
                return Poll::Ready(Event::Changed);
            }
            if looks {
                return Poll::Ready(Event::Changed);
            }
            // It has heard of it: it was polled after it was asked to stop.
            if let Some(over) = &mut grace
                && (over.as_mut().poll(cx).is_ready()
                    || commit.is_none() && !look && !woken.is_woken() && journal.can_stop_at_once())
            {
                return Poll::Ready(Event::GraceOver);
            }
            // Nobody would see to the end of its grace.
            if grace.is_some() {
                return Poll::Pending;
            }
            if !woken.is_woken() && journal.refusal().is_some() && journal.can_be_parked() {
                return Poll::Ready(Event::Park);
            }
            poll_parking(inner, &journal, &mut parking, cx)
        })
        .await;
        match event {
            Event::Write(changes) => {
                commit = Some(Box::pin(held.write(changes, Transition::Continue)));
            }
            Event::Written(Wrote::All) => {
                commit = None;
                journal.written();
                inner.tell_readers(&held.lease.task);
            }
            Event::Written(Wrote::NotAll(limit)) => {
                commit = None;
                journal.refuse(limit);
            }
            Event::Changed => (look, again) = (true, None),
            Event::Lost | Event::Written(Wrote::Nothing) => {
                give_up(&journal, work);
                Box::pin(held.lost(cleans_up)).await;
                return Left::ended(cleans_up);
            }
            Event::Done(outcome) => {
                Box::pin(held.end(&journal, commit, outcome, cleans_up)).await;
                return Left::ended(cleans_up);
            }
            Event::GraceOver => {
                give_up(&journal, work);
                Box::pin(held.end(&journal, commit, TaskOutcome::Cancelled, cleans_up)).await;
                return Left::ended(cleans_up);
            }
            // What it waits for may not have been stored, and nobody would bring the run back.
            Event::Park if journal.refusal().is_some() => {
                give_up(&journal, work);
                let limit = journal.refusal().unwrap_or_default();
                let outcome = TaskOutcome::Error(over_bytes(limit));
                Box::pin(held.end(&journal, commit, outcome, cleans_up)).await;
                return Left::ended(cleans_up);
            }
            Event::Park | Event::HandOver | Event::Shed(_) => {
                let (due, seen, capacity) = match event {
                    Event::HandOver => (Some(0), EngineEvent::HandedOver, None),
                    Event::Shed(YieldToReplica { capacity: Some(capacity), .. }) => (
                        Some(in_a_while(capacity.look_again())),
                        EngineEvent::Parked,
                        Some(capacity),
                    ),
                    Event::Shed(YieldToReplica { retry_after: after, .. }) => {
                        (Some(in_a_while(after.unwrap_or_default())), EngineEvent::HandedOver, None)
                    }
                    _ => (journal.next_due(), EngineEvent::Parked, None),
                };
                let then = Transition::Park { due, seen: journal.count_answers() };
                let written = Box::pin(held.write(Changes::default(), then)).await.is_held();
                give_up(&journal, work);
                match written {
                    true => held.saw(seen),
                    false => Box::pin(held.gone(cleans_up)).await,
                }
                return capacity.filter(|_| written).map_or(Left::Waiting, Left::NoPermit);
            }
        }
    }
}

/// The run is dropped; what it drops is not withdrawn.
fn give_up(journal: &Journal, work: Work) {
    journal.close();
    // The destructors of a handler may panic like anything else of it.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
}

impl<'a> Held<'a> {
    pub(super) fn saw(&self, seen: EngineEvent<'_>) {
        self.inner.saw(self.principal, &self.lease.task, seen);
    }

    /// The task is not this worker's any more, and its run is gone.
    async fn lost(&self, cleans_up: bool) {
        self.saw(EngineEvent::Lost);
        self.gone(cleans_up).await;
    }

    /// The run of a task is gone that was lost. If others have ended it, what is to be done after
    /// it has waited for that.
    async fn gone(&self, cleans_up: bool) {
        if cleans_up {
            self.cleaned_up(CleanupState::Due).await;
        }
    }

    /// Writes the outcome, and what was recorded before it, in one piece.
    async fn end(
        &self,
        journal: &Journal,
        commit: Option<Commit<'_>>,
        mut outcome: TaskOutcome,
        cleans_up: bool,
    ) {
        if let Some(writing) = commit {
            match writing.await {
                Wrote::All => journal.written(),
                Wrote::NotAll(limit) => journal.refuse(limit),
                Wrote::Nothing => return self.lost(cleans_up).await,
            }
        }
        journal.written();
        if let (Some(limit), TaskOutcome::Result(_)) = (journal.refusal(), &outcome)
            && journal.lost_blocks()
        {
            // A result without a part of what was emitted is none.
            outcome = TaskOutcome::Error(over_bytes(limit));
        }
        let changes = journal.take_changes().unwrap_or_default();
        let then = self.inner.config.over(outcome, journal.is_quarantined());
        if !self.write_over(changes, then).await.is_held() {
            self.gone(cleans_up).await;
        }
    }

    /// Writes what becomes of a task whose work is over. Its client is told what it waits for.
    pub(super) fn write_over(
        self,
        mut changes: Changes,
        then: Transition,
    ) -> impl Future<Output = Wrote> + Send + use<'a> {
        if let Transition::Quarantine { outcome, .. } = &then {
            let why = match outcome {
                TaskOutcome::Error(error) => error.message.as_str(),
                _ => "it cannot go on",
            };
            changes.status_message = Some(format!("stopped, and kept for an operator: {why}"));
        }
        self.write(changes, then)
    }

    /// Writes, and tries again while the store cannot be used and the lease may last. What has no
    /// room in the bytes of its principal is left out.
    // Not an async fn, whose future would have room for what is written twice.
    pub(super) fn write(
        self,
        mut changes: Changes,
        mut then: Transition,
    ) -> impl Future<Output = Wrote> + Send + use<'a> {
        let Self { inner, lease, principal } = self;
        let limit = self.charge(&mut changes, &then);
        async move {
            let began = Instant::now();
            let mut pause = Duration::from_millis(50);
            let mut wrote = Wrote::All;
            loop {
                match inner.store.commit(lease, &changes, &then).await {
                    Ok(()) => {
                        self.saw(EngineEvent::Written(began.elapsed()));
                        match &then {
                            Transition::End { outcome, .. } => {
                                self.saw(EngineEvent::Ended(outcome))
                            }
                            Transition::Quarantine { outcome, .. } => {
                                self.saw(EngineEvent::Kept(outcome))
                            }
                            Transition::Continue | Transition::Park { .. } => {}
                        }
                        return wrote;
                    }
                    Err(StoreError::LeaseLost) => return Wrote::Nothing,
                    Err(StoreError::OverBytes) if changes.charge.is_some() => {
                        tracing::warn!(task = %lease.task, principal, limit, "a task stores too much");
                        wrote = Wrote::NotAll(limit);
                        leave_out(&mut changes, &mut then, limit);
                        if changes.is_empty() && matches!(then, Transition::Continue) {
                            return wrote;
                        }
                    }
                    Err(error) => {
                        tracing::warn!(task = %lease.task, %error, "a task could not be written");
                        if began.elapsed() + pause > inner.config.lease_duration {
                            return Wrote::Nothing;
                        }
                        Box::pin(sleep(pause)).await;
                        pause = (pause * 2).min(Duration::from_secs(2));
                    }
                }
            }
        }
    }

    /// Notes whom changes count for, and returns the name of the limit.
    fn charge(&self, changes: &mut Changes, then: &Transition) -> &'static str {
        let stores = !changes.is_empty() || matches!(then, Transition::End { .. });
        let allowance = self.inner.runner.allowance(self.principal).filter(|_| stores);
        let Some(Allowance { max_bytes, limit }) = allowance else { return "" };
        changes.charge = Some(Charge { principal: self.principal.to_owned(), max_bytes });
        limit
    }

    /// Looks what others have done to the task.
    async fn news(&self, journal: &Journal) -> News {
        let Self { inner, lease, .. } = self;
        match inner.store.inbox(lease).await {
            Ok(heard) => {
                journal.take_answers(heard.answers);
                if heard.cancel_requested { News::Cancelled } else { News::Answers }
            }
            Err(StoreError::LeaseLost) => News::Lost,
            Err(error) => {
                tracing::warn!(task = %lease.task, %error, "answers could not be read");
                News::Unread
            }
        }
    }
}

/// Leaves out of a write what its principal has no room for. The end of a task is written in any case:
/// without its outcome if that is too large, or a part of it is not stored.
fn leave_out(changes: &mut Changes, then: &mut Transition, limit: &'static str) {
    let (charge, emitted) = (changes.charge.take(), !changes.segments.is_empty());
    let stored = !changes.entries.is_empty() || emitted || !changes.input_requests.is_empty();
    *changes = std::mem::take(changes).without_growth();
    match then {
        Transition::End { outcome, .. } if !outcome.needs_cleanup() => match stored && !emitted {
            // Nobody needs what it has recorded any more; its outcome may have room.
            true => changes.charge = charge,
            false => *outcome = TaskOutcome::Error(over_bytes(limit)),
        },
        _ => {}
    }
}

enum News {
    Answers,
    Cancelled,
    Lost,
    /// The store could not be read.
    Unread,
}

/// A handler that panics ends its own task and no other.
fn poll_work(work: &mut Work, cx: &mut Context<'_>) -> Poll<TaskOutcome> {
    match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx))) {
        Ok(polled) => polled,
        Err(_) => {
            tracing::error!("a task panicked");
            Poll::Ready(TaskOutcome::Error(internal("internal error".to_owned())))
        }
    }
}

/// Whether the run has been quiet for long enough, waiting for what a store can wait for.
fn poll_parking(
    inner: &Inner,
    journal: &Journal,
    parking: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<Event> {
    if !journal.can_be_parked() {
        *parking = None;
        return Poll::Pending;
    }
    // Nobody here watches the deadlines of questions: the store does, and brings the run back.
    let deadline = journal.next_deadline().map(|due| due.saturating_sub(wall_clock()));
    let wait = deadline.map_or(inner.config.park_after, |millis| {
        inner.config.park_after.min(Duration::from_millis(millis))
    });
    let end = Instant::now() + wait;
    let timer = parking.get_or_insert_with(|| Box::pin(sleep_until(end)));
    timer.as_mut().poll(cx).map(|()| Event::Park)
}

/// So long after now, in milliseconds since 1970.
fn in_a_while(after: Duration) -> u64 {
    wall_clock().saturating_add(millis(after))
}

/// The error of a task whose caller has as many bytes stored as it may.
fn over_bytes(limit: &'static str) -> ErrorObject {
    let data = serde_json::value::to_raw_value(&serde_json::json!({ "limit": limit })).ok();
    ErrorObject {
        code: code::INTERNAL,
        message: JournalError::OverBytes { limit }.to_string(),
        data,
    }
}

pub(super) fn internal(message: String) -> ErrorObject {
    ErrorObject { code: code::INTERNAL, message, data: None }
}
