//! Messages of one call that wait for its handler.
//!
//! The reader of a process never waits for a handler, so a slow call does not delay the others. The
//! mailbox is bounded instead: of status and progress only the newest counts, and a call with too many
//! other messages fails.

use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::line::from_worker::RunContent;

/// Maximum number and bytes of messages that wait for a handler.
const MAX_MESSAGES: usize = 8_192;
const MAX_BYTES: usize = 32 << 20;

/// Messages of one call.
#[derive(Default)]
pub(crate) struct Mailbox {
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    messages: VecDeque<(RunContent, usize)>,
    bytes: usize,
    status: Option<RunContent>,
    progress: Option<RunContent>,
    /// Reason why the call fails after its messages.
    failure: Option<String>,
    /// Reason why the process is lost.
    loss: Option<Arc<str>>,
    /// Whether another process should continue the call.
    moves: bool,
    waker: Option<Waker>,
}

/// An event of a call.
#[derive(Debug)]
pub(crate) enum CallEvent {
    Message(RunContent),
    /// The call fails for this reason.
    Failed(String),
    /// The process is lost for this reason.
    Lost(Arc<str>),
}

impl Mailbox {
    /// Adds a message of `bytes` bytes.
    pub(crate) fn push(&self, message: RunContent, bytes: usize) {
        let mut state = self.lock();
        match message {
            RunContent::StatusMessage(_) => state.status = Some(message),
            RunContent::Progress { .. } => state.progress = Some(message),
            message if state.messages.len() < MAX_MESSAGES && state.bytes < MAX_BYTES => {
                state.bytes += bytes;
                state.messages.push_back((message, bytes));
            }
            _ => {
                let reason = "the tool worker sends messages of this call faster than the server can \
                              process them; wait for `recorded` between steps";
                state.failure.get_or_insert_with(|| reason.to_owned());
            }
        }
        wake(state);
    }

    /// Makes the call fail.
    pub(crate) fn fail(&self, reason: String) {
        let mut state = self.lock();
        state.failure.get_or_insert(reason);
        wake(state);
    }

    /// Reports that the process is lost.
    pub(crate) fn lose(&self, reason: &Arc<str>) {
        let mut state = self.lock();
        state.loss.get_or_insert_with(|| Arc::clone(reason));
        wake(state);
    }

    /// Requests that another process continues the call.
    pub(crate) fn request_move(&self) {
        let mut state = self.lock();
        state.moves = true;
        wake(state);
    }

    /// Returns whether another process should continue the call.
    pub(crate) fn is_move_requested(&self) -> bool {
        self.lock().moves
    }

    /// Returns the next event. A failure or loss follows all messages before it.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<CallEvent> {
        let mut state = self.lock();
        if let Some(report) = state.status.take().or_else(|| state.progress.take()) {
            return Poll::Ready(CallEvent::Message(report));
        }
        if let Some((message, bytes)) = state.messages.pop_front() {
            state.bytes -= bytes;
            return Poll::Ready(CallEvent::Message(message));
        }
        if let Some(reason) = state.failure.take() {
            return Poll::Ready(CallEvent::Failed(reason));
        }
        if let Some(reason) = state.loss.take() {
            return Poll::Ready(CallEvent::Lost(reason));
        }
        state.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let waker = mem::take(&mut state.waker);
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Arc,
        task::{Context, Poll, Waker},
    };

    use super::{CallEvent, MAX_MESSAGES, Mailbox};
    use crate::line::from_worker::RunContent;

    fn next(mailbox: &Mailbox) -> Option<CallEvent> {
        match mailbox.poll_next(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(event) => Some(event),
            Poll::Pending => None,
        }
    }

    fn step(key: &str) -> RunContent {
        RunContent::Step { key: key.to_owned(), once: false }
    }

    #[test]
    fn loss_follows_all_messages() {
        let mailbox = Mailbox::default();
        mailbox.lose(&Arc::from("exited"));
        mailbox.push(step("a"), 1);
        assert!(matches!(next(&mailbox), Some(CallEvent::Message(RunContent::Step { .. }))));
        assert!(matches!(next(&mailbox), Some(CallEvent::Lost(_))));
        assert!(next(&mailbox).is_none());
    }

    #[test]
    fn only_newest_status_is_retained() {
        let mailbox = Mailbox::default();
        for number in 0..100_000 {
            mailbox.push(RunContent::StatusMessage(number.to_string()), 10);
        }
        let Some(CallEvent::Message(RunContent::StatusMessage(text))) = next(&mailbox) else {
            panic!("a status message is there")
        };
        assert_eq!(text, "99999");
        assert!(next(&mailbox).is_none());
    }

    #[test]
    fn call_with_too_many_messages_fails_after_them() {
        let mailbox = Mailbox::default();
        for _ in 0..=MAX_MESSAGES {
            mailbox.push(step("a"), 1);
        }
        for _ in 0..MAX_MESSAGES {
            assert!(matches!(next(&mailbox), Some(CallEvent::Message(_))));
        }
        assert!(matches!(next(&mailbox), Some(CallEvent::Failed(_))));
    }
}
