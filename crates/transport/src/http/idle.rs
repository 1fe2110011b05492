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
#[derive(Clone)]
pub(super) struct IdleTimer {
    // A std mutex: it is held for a poll, and only the connection's own task asks for it.
    state: Arc<Mutex<State>>,
}

struct State {
    entry: Option<Pin<Box<Sleep>>>,
    /// How long the first head may take. Taken when hyper begins to wait for it.
    head_timeout: Option<Duration>,
}

impl IdleTimer {
    /// A timer for a new connection, whose first head has to come within this time.
    pub(super) fn new(head_timeout: Duration) -> Self {
        let state = State { entry: None, head_timeout: Some(head_timeout) };
        Self { state: Arc::new(Mutex::new(state)) }
    }
}

impl rt::Timer for IdleTimer {
    fn sleep(&self, span: Duration) -> Pin<Box<dyn rt::Sleep>> {
        self.sleep_until(self.now() + span)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn rt::Sleep>> {
        let first = self.state.lock().unwrap_or_else(PoisonError::into_inner).head_timeout.take();
        let deadline = first.map_or(deadline, |first| deadline.min(self.now() + first));
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
        let mut state = self.timer.state.lock().unwrap_or_else(PoisonError::into_inner);
        let sleep = state.entry.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
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

#[cfg(test)]
mod tests {
    use std::{
        task::{Context, Waker},
        time::Duration,
    };

    use hyper::rt::Timer;

    use super::IdleTimer;

    const SECOND: Duration = Duration::from_secs(1);

    /// A connection that asks for one deadline, drops it after a while and waits for the next.
    async fn check(first: u32, after: u32, second: u32) {
        let timer = IdleTimer::new(SECOND * 1_000);
        let begun = timer.now();
        let mut dropped = timer.sleep(SECOND * first);
        assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(dropped);
        tokio::time::sleep(SECOND * after).await;
        timer.sleep(SECOND * second).await;
        assert_eq!((timer.now() - begun).as_secs(), u64::from(after + second));
    }

    #[tokio::test(start_paused = true)]
    async fn the_entry_of_an_earlier_deadline_is_moved() {
        check(10, 6, 10).await;
        check(10, 20, 10).await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_head_has_a_deadline_of_its_own() {
        let timer = IdleTimer::new(SECOND * 10);
        let begun = timer.now();
        timer.sleep(SECOND * 75).await;
        assert_eq!((timer.now() - begun).as_secs(), 10);
        timer.sleep(SECOND * 75).await;
        assert_eq!((timer.now() - begun).as_secs(), 85);
    }

    #[tokio::test(start_paused = true)]
    async fn an_earlier_deadline_is_met_in_time() {
        check(10, 0, 2).await;
        check(10, 9, 0).await;
    }
}
