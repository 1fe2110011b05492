//! The timer of connections that wait for their next request.
//!
//! hyper sets a new deadline for every request and drops it when the request's head has come. To
//! enter each into the runtime's timer and take it out again would be one of the larger costs of
//! a call, and hardly any deadline is ever met. So a connection keeps one entry, and moves it only
//! when it fires and the deadline is a later one by then.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::rt;
use tokio::time::{Sleep, sleep_until};

/// The timer of one connection, which has at most one deadline at a time.
#[derive(Clone, Default)]
pub(super) struct IdleTimer {
    // A std mutex: it is held for a poll, and only the connection's own task asks for it.
    entry: Arc<Mutex<Option<Pin<Box<Sleep>>>>>,
}

impl rt::Timer for IdleTimer {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn rt::Sleep>> {
        self.sleep_until(self.now() + span)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(Deadline { timer: self.clone(), deadline })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// Completes when its time has come. Dropping it leaves the entry behind for the next one.
struct Deadline {
    timer: IdleTimer,
    deadline: Instant,
}

impl rt::Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline.into();
        let mut entry = self.timer.entry.lock().unwrap_or_else(PoisonError::into_inner);
        let sleep = entry.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if deadline <= sleep.deadline() {
                return Poll::Ready(());
            }
            // It was entered for an earlier request.
            sleep.as_mut().reset(deadline);
        }
    }
}
