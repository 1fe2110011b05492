//! Input requests of a run, and how responses reach them.

use std::{
    collections::BTreeMap,
    mem,
    task::{Context, Poll, Waker},
};

use outlive_wire::{InputRequest, RawJson};

use super::{
    open_inputs::{InputPoll, Open, OpenInputRequest, OpenInputs},
    pending_writes::{PendingWrites, WriteTicket},
    state::{DUE, Journal, JournalLimits, State},
};
use crate::{
    current_run::RunId,
    error::JournalError,
    record::{InputFailure, JournalEntry},
};

impl Journal {
    /// Asks a question, unless it is answered. `within` is now, and for how long it may be open,
    /// both in milliseconds.
    pub fn ask(
        &self,
        run: RunId,
        key: &str,
        request: InputRequest,
        within: Option<(u64, u64)>,
    ) -> Result<InputPoll, JournalError> {
        self.put(run, key, Some(request), within).map(|(asking, _)| asking)
    }

    /// Waits for an answer from outside, unless it is there. Whoever is to answer can when the
    /// ticket is redeemed: [`Journal::poll_written`].
    pub fn open_external_event(
        &self,
        run: RunId,
        key: &str,
        within: Option<(u64, u64)>,
    ) -> Result<(InputPoll, WriteTicket), JournalError> {
        self.put(run, key, None, within)
    }

    fn put(
        &self,
        run: RunId,
        key: &str,
        request: Option<InputRequest>,
        within: Option<(u64, u64)>,
    ) -> Result<(InputPoll, WriteTicket), JournalError> {
        let bounds = self.bounds();
        let mut state = self.enter(run, key)?;
        state.take(key)?;
        let due = match within {
            None => None,
            Some((now, span)) => Some(state.due(key, now, span, bounds)?),
        };
        if let Some(answer) = state.given(key).filter(|_| request.is_some()) {
            state.record(key, JournalEntry::Answer(answer), bounds)?;
        }
        match state.answer(key)? {
            InputPoll::Open if state.questions.open.len() >= bounds.questions => {
                state.give_back(key);
                Err(JournalError::TooManyInputRequests {
                    key: key.to_owned(),
                    limit: bounds.questions,
                })
            }
            InputPoll::Open => {
                state.questions.push(key, request, due);
                // It is written with everything else, so it needs room like everything else.
                if let Err(full) = state.grow(|| key.to_owned(), 0, bounds) {
                    state.questions.remove(key);
                    state.give_back(key);
                    return Err(full);
                }
                let ticket =
                    state.unwritten.as_ref().map_or(WriteTicket::NONE, PendingWrites::ticket);
                Ok((InputPoll::Open, ticket))
            }
            answered => Ok((answered, WriteTicket::NONE)),
        }
    }

    /// Waits for an answer to a question that is open.
    pub fn poll_answer(
        &self,
        key: &str,
        cx: &mut Context<'_>,
    ) -> Poll<Result<InputPoll, JournalError>> {
        let mut state = self.lock();
        match state.answer(key) {
            Ok(InputPoll::Open) if state.is_closing() => {
                Poll::Ready(Err(JournalError::RunEnded(key.to_owned())))
            }
            Ok(InputPoll::Open) => {
                if let Some(open) = state.questions.find(key) {
                    open.waker = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            settled => Poll::Ready(settled),
        }
    }

    /// The answer does not fit: the question is asked again, under another name. Returns how often
    /// that has been now.
    pub fn reissue(&self, key: &str, request: InputRequest) -> u32 {
        let mut state = self.lock();
        state.forget(key);
        let due = match state.entry(&due_key(key)) {
            Some(JournalEntry::Due(due)) => Some(*due),
            _ => None,
        };
        state.questions.push(key, Some(request), due);
        let times = state.questions.reasked.entry(key.to_owned()).or_default();
        *times += 1;
        *times
    }

    /// Nobody waits for the answer any more.
    pub fn withdraw(&self, key: &str) {
        let mut state = self.lock();
        // A run that is suspended drops its questions, and means them all the same.
        if state.is_closing() {
            return;
        }
        if let Some(open) = state.questions.remove(key)
            && open.sent
        {
            let name = state.questions.name(key);
            if let Some(unwritten) = &mut state.unwritten {
                unwritten.changes.withdrawn.push(name);
            }
        }
        state.give_back(key);
    }

    /// Whether an answer came to a question that we do not remember having asked.
    pub fn was_unasked(&self, key: &str) -> bool {
        self.lock().questions.unasked.contains(key)
    }

    /// What the client sent as an answer is none. It is forgotten, and the run will not go on.
    pub fn refuse_answer(&self, key: &str, why: String) {
        let mut state = self.lock();
        state.forget(key);
        state.questions.malformed.get_or_insert(why);
    }

    /// Why what the client sent cannot be an answer, if that has been found.
    pub fn malformed(&self) -> Option<String> {
        self.lock().questions.malformed.clone()
    }

    /// The questions that are open and have not been sent. They count as sent from now on.
    pub fn unsent(&self) -> Vec<OpenInputRequest> {
        let mut state = self.lock();
        let OpenInputs { open, reasked, .. } = &mut state.questions;
        let unsent = |open: &mut Open| match mem::replace(&mut open.sent, true) {
            true => None,
            false => open.show(reasked),
        };
        open.iter_mut().filter_map(unsent).collect()
    }

    /// All questions that are open.
    pub fn open_questions(&self) -> Vec<OpenInputRequest> {
        let state = self.lock();
        let OpenInputs { open, reasked, .. } = &state.questions;
        open.iter().filter_map(|open| open.show(reasked)).collect()
    }

    /// Whether any question is open.
    pub fn has_open_questions(&self) -> bool {
        !self.lock().questions.open.is_empty()
    }

    /// Which asking of a key is open, if one is.
    pub fn serial_of(&self, key: &str) -> Option<u64> {
        let state = self.lock();
        state.questions.open.iter().find(|open| open.key == key).map(|open| open.serial)
    }

    /// The client has answered, or will not.
    pub fn resolve(
        &self,
        key: &str,
        answer: Result<RawJson, InputFailure>,
    ) -> Result<(), JournalError> {
        let bounds = self.bounds();
        let entry = answer.map_or_else(JournalEntry::Unanswered, JournalEntry::Answer);
        let mut state = self.lock();
        state.record(key, entry, bounds)?;
        let waker = state.questions.remove(key).and_then(|open| open.waker);
        drop(state);
        waker.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Takes answers that the store has. Those to what is not open now are there when it is asked.
    pub fn take_answers(&self, answers: Vec<(String, RawJson)>) -> usize {
        let mut state = self.lock();
        let mut wakers = Vec::new();
        for (key, answer) in answers {
            if state.entry(&key).is_none() {
                state.read_back(&key, JournalEntry::Answer(answer));
                wakers.extend(state.questions.remove(&key).and_then(|open| open.waker));
            }
        }
        drop(state);
        let count = wakers.len();
        wakers.into_iter().for_each(Waker::wake);
        count
    }

    /// How many answers there are.
    pub fn count_answers(&self) -> usize {
        self.lock().count_answers()
    }

    /// Takes the answers of a round. Those to questions that nobody asked are ignored, and late ones
    /// do not count. If it is not remembered what was asked, all are kept in case it is asked now.
    pub fn apply_responses(
        &self,
        asked: Option<&[String]>,
        mut given: BTreeMap<String, RawJson>,
        now: u64,
    ) {
        let bounds = self.bounds();
        let mut state = self.lock();
        for key in asked.unwrap_or_default() {
            let Some(answer) = given.remove(&state.questions.name(key)) else { continue };
            let is_late =
                matches!(state.entry(&due_key(key)), Some(JournalEntry::Due(due)) if now > *due);
            let entry = match is_late {
                true => JournalEntry::Unanswered(InputFailure::TimedOut),
                false => JournalEntry::Answer(answer),
            };
            // What does not fit is not kept; it is asked for again, and missed then.
            if state.record(key, entry, bounds).is_err() {
                tracing::warn!(key, "an answer is too large for the journal");
            }
        }
        if asked.is_none() {
            state.questions.given = given;
        }
    }

    /// An answer by its key, for a handler that asks by itself.
    pub fn read_answer(&self, key: &str) -> Result<InputPoll, JournalError> {
        let bounds = self.bounds();
        let mut state = self.lock();
        if let Some(answer) = state.given(key) {
            state.record(key, JournalEntry::Answer(answer), bounds)?;
        }
        let answer = state.answer(key);
        // Reading it twice is no mistake here.
        let _ = state.take(key);
        answer
    }

    /// Asks for a handler that asks by itself.
    pub fn open(&self, key: &str, request: InputRequest) {
        let mut state = self.lock();
        // It has seen the answer, if there is one, and asks all the same.
        if state.entry(key).is_some() {
            state.forget(key);
            *state.questions.reasked.entry(key.to_owned()).or_default() += 1;
        }
        state.questions.push(key, Some(request), None);
    }
}

fn due_key(key: &str) -> String {
    format!("{key}{DUE}")
}

impl State {
    fn count_answers(&self) -> usize {
        self.entries().filter(|entry| matches!(entry, JournalEntry::Answer(_))).count()
    }

    fn answer(&self, key: &str) -> Result<InputPoll, JournalError> {
        match self.entry(key) {
            Some(JournalEntry::Answer(raw)) => Ok(InputPoll::Answered(raw.clone())),
            Some(JournalEntry::Unanswered(why)) => Ok(InputPoll::Unanswered(why.clone())),
            Some(_) => Err(JournalError::KindMismatch(key.to_owned())),
            None => Ok(InputPoll::Open),
        }
    }

    /// The answer that came without a state, if it is to this question.
    fn given(&mut self, key: &str) -> Option<RawJson> {
        if self.questions.given.is_empty() || self.entry(key).is_some() {
            return None;
        }
        let answer = self.questions.given.remove(&self.questions.name(key))?;
        self.questions.unasked.insert(key.to_owned());
        Some(answer)
    }

    /// When a question is over; from the first time it is asked on.
    fn due(
        &mut self,
        key: &str,
        now: u64,
        span: u64,
        bounds: JournalLimits,
    ) -> Result<u64, JournalError> {
        let due_key = due_key(key);
        if let Some(JournalEntry::Due(due)) = self.entry(&due_key) {
            let due = *due;
            if now > due && self.entry(key).is_none() {
                self.record(key, JournalEntry::Unanswered(InputFailure::TimedOut), bounds)?;
            }
            return Ok(due);
        }
        let due = now.saturating_add(span);
        self.record(&due_key, JournalEntry::Due(due), bounds)?;
        Ok(due)
    }
}
