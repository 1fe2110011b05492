//! The open input requests of a run, and responses that arrived without a state.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    task::Waker,
};

use outlive_wire::{InputRequest, RawJson};

use crate::{
    record::{InputFailure, wire_key, written},
    store::NewInputRequest,
};

/// The open input requests of a run.
#[derive(Default)]
pub(super) struct OpenInputs {
    /// In the order in which they were asked.
    pub(super) open: Vec<Open>,
    /// How many have been asked over this journal.
    pub(super) asked: u64,
    /// How often the answer did not fit.
    pub(super) reasked: BTreeMap<String, u32>,
    /// Answers to questions that we do not remember having asked, by their name on the wire.
    pub(super) given: BTreeMap<String, RawJson>,
    /// The keys of those that have been taken for answers.
    pub(super) unasked: BTreeSet<String>,
    /// Why an answer is none.
    pub(super) malformed: Option<String>,
}

pub(super) struct Open {
    pub(super) key: String,
    pub(super) serial: u64,
    /// What the client is asked; `None` if somebody outside is to answer.
    pub(super) request: Option<InputRequest>,
    pub(super) due: Option<u64>,
    pub(super) sent: bool,
    pub(super) waker: Option<Waker>,
}

/// What became of a question.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth thing")]
pub enum InputPoll {
    /// The client has answered.
    Answered(RawJson),
    /// It will not.
    Unanswered(InputFailure),
    /// It may still.
    Open,
}

/// A question that is to be put to the client.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made here, sent by the floor above")]
pub struct OpenInputRequest {
    /// Its key in the journal.
    pub key: String,
    /// Its name on the wire.
    pub name: String,
    /// The question.
    pub request: InputRequest,
    /// When it is over, in milliseconds since 1970.
    pub due: Option<u64>,
    /// Which asking it is: another one each time.
    pub serial: u64,
}

impl OpenInputs {
    pub(super) fn reasked(reasked: BTreeMap<String, u32>) -> Self {
        Self { reasked, ..Self::default() }
    }

    /// How many bytes the open questions are written as, and how often they were asked.
    pub(super) fn size(&self) -> usize {
        // Its key, its kind, and a comma each.
        let open = self.open.iter().map(|open| written(&open.key) + 6);
        let reasked = self.reasked.keys().map(|key| written(key) + 12);
        open.chain(reasked).sum()
    }

    pub(super) fn any_open(&self) -> bool {
        !self.open.is_empty() || self.malformed.is_some()
    }

    /// When those that are open are over, as far as they ever are.
    pub(super) fn dues(&self) -> impl Iterator<Item = u64> {
        self.open.iter().filter_map(|open| open.due)
    }

    pub(super) fn open_keys(&self) -> Vec<String> {
        self.open.iter().map(|open| open.key.clone()).collect()
    }

    pub(super) fn times_reasked(&self) -> BTreeMap<String, u32> {
        self.reasked.clone()
    }

    pub(super) fn restart(&mut self) {
        self.open.clear();
    }

    pub(super) fn push(&mut self, key: &str, request: Option<InputRequest>, due: Option<u64>) {
        self.asked += 1;
        let serial = self.asked;
        let key = key.to_owned();
        self.open.push(Open { key, serial, request, due, sent: false, waker: None });
    }

    /// What has not been sent, as a store keeps it. It counts as sent from now on.
    pub(super) fn take_unsent(&mut self) -> Vec<NewInputRequest> {
        let Self { open, reasked, .. } = self;
        let unsent = |open: &mut Open| match mem::replace(&mut open.sent, true) {
            true => None,
            false => Some(NewInputRequest {
                key: open.key.clone(),
                name: wire_key(&open.key, reasked),
                request: open.request.clone(),
                due: open.due,
            }),
        };
        open.iter_mut().filter_map(unsent).collect()
    }

    pub(super) fn name(&self, key: &str) -> String {
        wire_key(key, &self.reasked)
    }

    pub(super) fn find(&mut self, key: &str) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.key == key)
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Open> {
        let at = self.open.iter().position(|open| open.key == key)?;
        Some(self.open.remove(at))
    }
}

impl Open {
    /// What is put to the client, if it is asked.
    pub(super) fn show(&self, reasked: &BTreeMap<String, u32>) -> Option<OpenInputRequest> {
        Some(OpenInputRequest {
            key: self.key.clone(),
            name: wire_key(&self.key, reasked),
            request: self.request.clone()?,
            due: self.due,
            serial: self.serial,
        })
    }
}

impl fmt::Debug for OpenInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open.iter().map(|open| &open.key)).finish()
    }
}
