//! Input requests and responses of a task in memory.

use outlive_wire::RawJson;

use super::{input_row::InputRow, row::Row};
use crate::{
    JournalEntry,
    store::{
        Changes, Decision, DecisionOutcome, Inbox, InputRequestState, InputSource, NewInputRequest,
        Phase, RecordedEntry, TaskEvent, UnixMillis, ballot::Ballot, budget,
    },
};

impl Row {
    pub(super) fn asked(&self, name: &str) -> Option<&InputRow> {
        self.input_requests.iter().find(|input| input.asked.name == name)
    }

    /// Opens an input request. A withdrawn request is opened again, with a new position and without
    /// its votes.
    pub(super) fn ask(&mut self, asked: NewInputRequest, now: UnixMillis) {
        let known = self.input_requests.iter().position(|input| input.asked.name == asked.name);
        match known {
            Some(index) if self.input_requests[index].state == InputRequestState::Withdrawn => {
                let withdrawn = self.input_requests.remove(index);
                self.bytes -= budget::input_request(&withdrawn.asked);
                self.bytes -= withdrawn.votes.iter().map(budget::vote).sum::<usize>();
            }
            Some(_) => return,
            None => {}
        }
        self.bytes += budget::input_request(&asked);
        let input = InputRow::new(asked, now);
        if let Some(name) = input.notified_name() {
            self.emit(TaskEvent::InputRequestOpened, Some(name), now);
        }
        self.input_requests.push(input);
    }

    /// Withdraws the open input requests that `is_withdrawn` selects.
    pub(super) fn withdraw(
        &mut self,
        is_withdrawn: impl Fn(&NewInputRequest) -> bool,
        now: UnixMillis,
    ) {
        let mut notified = Vec::new();
        for input in &mut self.input_requests {
            if input.is_open() && is_withdrawn(&input.asked) {
                notified.extend(input.close(InputRequestState::Withdrawn, now));
            }
        }
        for name in notified {
            self.emit(TaskEvent::InputRequestSettled, Some(name), now);
        }
    }

    /// Returns the bytes that the input requests of a write add.
    pub(super) fn growth_of_requests<'a>(
        &'a self,
        changes: &'a Changes,
    ) -> impl Iterator<Item = usize> + 'a {
        changes.input_requests.iter().map(|asked| match self.asked(&asked.name) {
            Some(known) if known.state == InputRequestState::Withdrawn => {
                budget::input_request(asked).saturating_sub(budget::input_request(&known.asked))
            }
            Some(_) => 0,
            None => budget::input_request(asked),
        })
    }

    /// Returns the number of bytes that the accepted responses add.
    pub(super) fn growth_of_answers(
        &self,
        from: InputSource,
        answers: &[(String, RawJson)],
    ) -> usize {
        let taken = answers.iter().filter_map(|(name, answer)| {
            let input = self.asked(name).filter(|input| input.accepts(from))?;
            Some(growth_of_answer(input, answer))
        });
        if self.phase == Phase::Ended { 0 } else { taken.sum() }
    }

    pub(super) fn take_answers(
        &mut self,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        now: UnixMillis,
    ) -> usize {
        let open = self.count_open();
        let mut taken = 0;
        for (name, answer) in answers {
            let mut inputs = self.input_requests.iter();
            let asked = inputs.position(|it| it.asked.name == name && it.accepts(from));
            let Some(index) = asked else { continue };
            self.accept(index, answer, now);
            taken += 1;
        }
        if taken > 0 {
            self.wake(open, now);
        }
        taken
    }

    /// Returns the outcome of a decision, with the number of bytes that it adds.
    pub(super) fn judge(
        &self,
        name: &str,
        decision: &Decision,
        now: UnixMillis,
    ) -> (DecisionOutcome, usize) {
        let asked = self.asked(name).filter(|input| input.asked.request.is_some());
        let Some(input) = asked else { return (DecisionOutcome::Unknown, 0) };
        let ballot = Ballot {
            person: self.person.as_deref(),
            audience: &input.asked.audience,
            binding: input.asked.binding.as_ref(),
            state: input.state,
            due: input.asked.due,
            votes: &input.votes,
        };
        let outcome = ballot.outcome(decision, now);
        let mut growth = decision.to_vote(now).as_ref().map_or(0, budget::vote);
        if outcome == DecisionOutcome::Settled {
            growth += growth_of_answer(input, &decision.response);
        }
        (outcome, growth)
    }

    /// Records a vote, and the response if the vote settles the request.
    pub(super) fn vote(&mut self, name: &str, decision: &Decision, settles: bool, now: UnixMillis) {
        let open = self.count_open();
        let mut inputs = self.input_requests.iter();
        let Some(index) = inputs.position(|input| input.asked.name == name) else { return };
        if let Some(vote) = decision.to_vote(now) {
            self.bytes += budget::vote(&vote);
            self.input_requests[index].votes.push(vote);
        }
        if settles {
            self.accept(index, decision.response.clone(), now);
            self.wake(open, now);
        }
    }

    /// Stores the response to a request.
    fn accept(&mut self, index: usize, response: RawJson, now: UnixMillis) {
        let input = &mut self.input_requests[index];
        let notified = input.close(InputRequestState::Answered, now);
        let key = input.asked.key.clone();
        self.record(RecordedEntry::new(key, JournalEntry::Answer(response)), now);
        if let Some(name) = notified {
            self.emit(TaskEvent::InputRequestSettled, Some(name), now);
        }
    }

    /// Queues a parked task that got a response. `open` is the former number of open requests.
    fn wake(&mut self, open: usize, now: UnixMillis) {
        if self.phase == Phase::Parked {
            self.phase = Phase::Queued;
            self.due = Some(now);
        }
        self.settle(open, now);
        self.touch(now);
    }

    pub(super) fn open(&self) -> impl Iterator<Item = &InputRow> {
        self.input_requests.iter().filter(|input| input.is_open())
    }

    pub(super) fn count_open(&self) -> usize {
        self.open().count()
    }

    pub(super) fn requires_input(&self) -> bool {
        self.count_open() > 0
    }

    /// Updates the TTL after a change in the number of open input requests. `before` is the former
    /// number.
    pub(super) fn settle(&mut self, before: usize, now: UnixMillis) {
        // A response does not shorten a quarantine.
        if self.kept.is_some() {
            return;
        }
        let (open, elapsed) = ((before, self.count_open()), now.saturating_sub(self.created));
        self.ttl = self.lifetime.when_asked(self.ttl, open, elapsed);
    }

    pub(super) fn answers(&self) -> impl Iterator<Item = (&String, &RawJson)> {
        self.journal.entries.iter().filter_map(|(key, entry)| match entry {
            JournalEntry::Answer(raw) => Some((key, raw)),
            _ => None,
        })
    }

    pub(super) fn heard(&self) -> Inbox {
        Inbox {
            answers: self.answers().map(|(key, raw)| (key.clone(), raw.clone())).collect(),
            cancel_requested: self.cancel_requested.is_some(),
        }
    }
}

/// Returns the bytes of a response in the journal.
fn growth_of_answer(input: &InputRow, answer: &RawJson) -> usize {
    budget::journal_entry(&input.asked.key, &JournalEntry::Answer(answer.clone()))
}
