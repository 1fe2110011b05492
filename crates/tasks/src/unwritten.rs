//! What a journal has and its store has not: gathered while the run is polled, written together.

use std::{
    mem,
    task::{Context, Poll, Waker},
};

use crate::{Journal, store::Changes};

/// What has been recorded since the last write.
#[derive(Default)]
pub(crate) struct Unwritten {
    pub(crate) changes: Changes,
    /// How many writes have been begun, and how many are done.
    begun: u64,
    done: u64,
    /// Those who wait for a write.
    waiting: Vec<Waker>,
    /// Whoever writes, to be woken when there is something to write from outside of the run.
    writer: Option<Waker>,
}

/// Says which write a record is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

impl Ticket {
    /// Nothing has to be written.
    pub(crate) const NONE: Self = Self(0);
}

impl Unwritten {
    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.begun == self.done
    }

    /// The write that comes next.
    pub(crate) fn ticket(&self) -> Ticket {
        Ticket(self.begun + 1)
    }

    /// Another run begins: nobody of the old one waits.
    pub(crate) fn restart(&mut self) {
        self.waiting.clear();
    }
}

impl Journal {
    /// From now on everything that is recorded is to be written. What is there already is not part
    /// of it: it is what the task is made with.
    pub fn begin_writing(&self) {
        let mut state = self.lock();
        let said = state.said.take();
        let unwritten = state.unwritten.get_or_insert_default();
        unwritten.changes.message = unwritten.changes.message.take().or(said);
    }

    /// There is no store after all: what was recorded stays in memory.
    pub fn stop_writing(&self) {
        let waiting = match self.lock().unwritten.take() {
            Some(unwritten) => unwritten.waiting,
            None => return,
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Takes what is to be written next, questions that have not been asked included. Nothing more
    /// is taken until [`Journal::written`] says that this is done.
    pub fn take_changes(&self) -> Option<Changes> {
        let mut state = self.lock();
        state.unwritten.as_ref()?;
        let asked = state.questions.take_unsent();
        let unwritten = state.unwritten.as_mut()?;
        let Changes { asked: all, withdrawn, .. } = &mut unwritten.changes;
        all.extend(asked);
        // These are open now. One that was withdrawn before would be withdrawn after, in a store.
        withdrawn.retain(|name| !all.iter().any(|asked| asked.name == *name));
        if unwritten.changes.is_empty() {
            return None;
        }
        unwritten.begun += 1;
        Some(mem::take(&mut unwritten.changes))
    }

    /// What was taken has been written.
    pub fn written(&self) {
        let mut state = self.lock();
        let Some(unwritten) = &mut state.unwritten else { return };
        unwritten.done = unwritten.begun;
        let waiting = mem::take(&mut unwritten.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Waits until a record has been written.
    pub fn poll_written(&self, ticket: Ticket, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        match &mut state.unwritten {
            Some(unwritten) if unwritten.done < ticket.0 => {
                unwritten.waiting.push(cx.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }

    /// Says what the run is doing, in words. Without a store it is kept for when there is one.
    pub fn say(&self, message: String) {
        let mut state = self.lock();
        let Some(unwritten) = &mut state.unwritten else {
            state.said = Some(message);
            return;
        };
        unwritten.changes.message = Some(message);
        let writer = unwritten.writer.take();
        drop(state);
        writer.into_iter().for_each(Waker::wake);
    }

    /// Whom to wake when something is said from outside of the run.
    pub fn set_writer(&self, waker: &Waker) {
        if let Some(unwritten) = &mut self.lock().unwritten {
            unwritten.writer = Some(waker.clone());
        }
    }
}
