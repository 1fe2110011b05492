//! One running task: polls its work, writes what it records, brings it the answers.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use outlive_wire::{ErrorObject, code};
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use super::{Inner, Signals, Started, Work};
use crate::{
    Journal,
    store::{Changes, Lease, StoreError, TaskOutcome, Then},
};

/// What a driver has to see to.
enum Event {
    Done(TaskOutcome),
    Write(Changes),
    Written(bool),
    Changed,
    Lost,
    /// It has waited for answers for long enough to wait without a worker.
    Park,
    /// It was asked to stop, and has had time for it.
    GraceOver,
}

/// A write on its way; `false` if the lease is lost.
type Commit<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// Runs a task until it ends, waits without a worker, or is lost.
pub(super) async fn drive(inner: &Inner, lease: &Lease, run: Started, signals: &Signals) {
    let Started { journal, mut work, cancel } = run;
    journal.begin_writing();
    let mut commit: Option<Commit<'_>> = None;
    let mut parking: Option<Pin<Box<Sleep>>> = None;
    let mut grace: Option<Pin<Box<Sleep>>> = None;
    // What came before we listened is looked for once.
    let mut look = true;
    loop {
        if look && commit.is_none() {
            look = false;
            match news(inner, lease, &journal).await {
                News::Lost => return give_up(&journal, work),
                News::Cancelled if grace.is_none() => {
                    cancel();
                    grace = Some(Box::pin(sleep(inner.config.cancel_grace)));
                }
                News::Cancelled | News::Answers => {}
            }
        }
        let mut changed = pin!(signals.changed.notified());
        let mut lost = pin!(signals.lost.notified());
        let event = poll_fn(|cx| {
            journal.set_writer(cx.waker());
            if lost.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Lost);
            }
            if let Some(writing) = &mut commit
                && let Poll::Ready(held) = writing.as_mut().poll(cx)
            {
                return Poll::Ready(Event::Written(held));
            }
            if let Poll::Ready(outcome) = poll_work(&mut work, cx) {
                return Poll::Ready(Event::Done(outcome));
            }
            if commit.is_none()
                && let Some(changes) = journal.take_changes()
            {
                return Poll::Ready(Event::Write(changes));
            }
            if changed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Changed);
            }
            if let Some(over) = &mut grace
                && over.as_mut().poll(cx).is_ready()
            {
                return Poll::Ready(Event::GraceOver);
            }
            poll_parking(inner, &journal, &mut parking, cx)
        })
        .await;
        match event {
            Event::Write(changes) => {
                commit = Some(Box::pin(write(inner, lease, changes, Then::GoOn)));
            }
            Event::Written(true) => {
                commit = None;
                journal.written();
            }
            Event::Changed => look = true,
            Event::Lost | Event::Written(false) => return give_up(&journal, work),
            Event::Done(outcome) => return end(inner, lease, &journal, commit, outcome).await,
            Event::GraceOver => {
                journal.close();
                drop(work);
                return end(inner, lease, &journal, commit, TaskOutcome::Cancelled).await;
            }
            Event::Park => {
                let seen = journal.count_answers();
                let due = journal.open_questions().iter().filter_map(|open| open.due).min();
                let then = Then::Park { due, seen };
                write(inner, lease, Changes::default(), then).await;
                return give_up(&journal, work);
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

/// Writes the outcome, and what was recorded before it, in one piece.
async fn end(
    inner: &Inner,
    lease: &Lease,
    journal: &Journal,
    commit: Option<Commit<'_>>,
    outcome: TaskOutcome,
) {
    if let Some(writing) = commit
        && !writing.await
    {
        return;
    }
    journal.written();
    let changes = journal.take_changes().unwrap_or_default();
    let then = Then::End { outcome, retention: inner.config.retention };
    write(inner, lease, changes, then).await;
}

/// Writes, and tries again while the store cannot be used and the lease may last. `false` if the
/// lease is lost.
pub(super) async fn write(inner: &Inner, lease: &Lease, changes: Changes, then: Then) -> bool {
    let deadline = Instant::now() + inner.config.lease;
    let mut pause = Duration::from_millis(50);
    loop {
        match inner.store.write(lease, changes.clone(), then.clone()).await {
            Ok(()) => return true,
            Err(StoreError::Lost) => return false,
            Err(error) => {
                tracing::warn!(task = %lease.task, %error, "a task could not be written");
                if Instant::now() + pause > deadline {
                    return false;
                }
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(2));
            }
        }
    }
}

enum News {
    Answers,
    Cancelled,
    Lost,
}

/// Looks what others have done to the task.
async fn news(inner: &Inner, lease: &Lease, journal: &Journal) -> News {
    match inner.store.heard(lease).await {
        Ok(heard) => {
            journal.take_answers(heard.answers);
            if heard.cancel_requested { News::Cancelled } else { News::Answers }
        }
        Err(StoreError::Lost) => News::Lost,
        // It will be looked for again with the next change.
        Err(error) => {
            tracing::warn!(task = %lease.task, %error, "answers could not be read");
            News::Answers
        }
    }
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

/// Whether the run has waited for answers, and for nothing else, for long enough.
fn poll_parking(
    inner: &Inner,
    journal: &Journal,
    parking: &mut Option<Pin<Box<Sleep>>>,
    cx: &mut Context<'_>,
) -> Poll<Event> {
    if !journal.waits_for_answers() {
        *parking = None;
        return Poll::Pending;
    }
    let end = Instant::now() + inner.config.park_after;
    let timer = parking.get_or_insert_with(|| Box::pin(sleep_until(end)));
    timer.as_mut().poll(cx).map(|()| Event::Park)
}

pub(super) fn internal(message: String) -> ErrorObject {
    ErrorObject { code: code::INTERNAL, message, data: None }
}
