//! Idle timer of a connection.
//!
//! hyper sets a new deadline for every request and drops it after the request head. Registering
//! each deadline with the runtime would be one of the larger costs of a call, and few deadlines
//! fire. A connection therefore keeps one timer entry, and moves it only if it fires before the
//! current deadline.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::rt;
use tokio::time::{Sleep, sleep_until};

/// Timer of one connection, with at most one deadline at a time.
#[derive(Clone)]
pub(super) struct IdleTimer {
    // A std mutex: held for one poll, and used only by the task of the connection.
    state: Arc<Mutex<State>>,
}

struct State {
    entry: Option<Pin<Box<Sleep>>>,
    /// Timeout of the first request head. Taken when hyper starts to wait for it.
    head_timeout: Option<Duration>,
}

impl IdleTimer {
    /// Creates a timer for a new connection. `head_timeout` applies to the first request head.
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

/// Completes at its deadline. Dropping it keeps the timer entry for the next deadline.
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
            // The entry had the deadline of an earlier request.
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

    /// Simulates a connection that sets a deadline, drops it after a while, and sets another one.
    async fn check(first: u32, after: u32, second: u32) {
        let timer = IdleTimer::new(SECOND * 1_000);
        let started = timer.now();
        let mut dropped = timer.sleep(SECOND * first);
        assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(dropped);
        tokio::time::sleep(SECOND * after).await;
        timer.sleep(SECOND * second).await;
        assert_eq!((timer.now() - started).as_secs(), u64::from(after + second));
    }

    #[tokio::test(start_paused = true)]
    async fn timer_with_a_later_deadline_fires_at_the_later_time() {
        check(10, 6, 10).await;
        check(10, 20, 10).await;
    }

    #[tokio::test(start_paused = true)]
    async fn first_request_head_has_a_separate_deadline() {
        let timer = IdleTimer::new(SECOND * 10);
        let started = timer.now();
        timer.sleep(SECOND * 75).await;
        assert_eq!((timer.now() - started).as_secs(), 10);
        timer.sleep(SECOND * 75).await;
        assert_eq!((timer.now() - started).as_secs(), 85);
    }

    #[tokio::test(start_paused = true)]
    async fn timer_with_an_earlier_deadline_fires_in_time() {
        check(10, 0, 2).await;
        check(10, 9, 0).await;
    }
}
