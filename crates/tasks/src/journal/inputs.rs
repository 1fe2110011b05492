//! The input requests of a run, and responses that arrived without a request state.

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

/// The input requests of a run.
#[derive(Default)]
pub(super) struct Inputs {
    /// The open ones, in the order of their issue.
    open: Vec<Open>,
    /// Number of requests that were issued over this journal.
    issued: u64,
    /// How often a request was issued again, because its response did not fit.
    reissued: BTreeMap<String, u32>,
    /// Responses to requests that the server does not remember, by wire key.
    unrequested: BTreeMap<String, RawJson>,
    /// Journal keys whose response was one of those.
    taken_unrequested: BTreeSet<String>,
    /// Why a value that the client sent is no response.
    malformed: Option<String>,
}

struct Open {
    key: String,
    serial: u64,
    /// The request to the client; `None` if another system responds.
    request: Option<InputRequest>,
    due: Option<u64>,
    sent: bool,
    waker: Option<Waker>,
}

/// State of an input request.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth thing")]
pub enum InputPoll {
    /// The client has responded.
    Answered(RawJson),
    /// The client will not respond.
    Unanswered(InputFailure),
    /// The client may still respond.
    Open,
}

/// An input request to send to the client.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made here, sent by the floor above")]
pub struct OpenInputRequest {
    /// Its journal key.
    pub key: String,
    /// Its wire key.
    pub name: String,
    /// The request.
    pub request: InputRequest,
    /// When it times out, in milliseconds since 1970.
    pub due: Option<u64>,
    /// The number of its issue, different for each one.
    pub serial: u64,
}

impl Inputs {
    /// Creates the requests of a journal that continues.
    pub(super) fn from_reissued(reissued: BTreeMap<String, u32>) -> Self {
        Self { reissued, ..Self::default() }
    }

    /// Returns how many bytes the open requests, and the numbers of their issues, have in a snapshot.
    pub(super) fn size(&self) -> usize {
        // A key, its kind, and a comma each.
        let open = self.open.iter().map(|open| written(&open.key) + 6);
        let reissued = self.reissued.keys().map(|key| written(key) + 12);
        open.chain(reissued).sum()
    }

    /// Returns the number of open requests.
    pub(super) fn count(&self) -> usize {
        self.open.len()
    }

    /// Returns whether the run waits for the client.
    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty() || self.malformed.is_some()
    }

    /// Returns when the open requests time out.
    pub(super) fn dues(&self) -> impl Iterator<Item = u64> {
        self.open.iter().filter_map(|open| open.due)
    }

    pub(super) fn open_keys(&self) -> Vec<String> {
        self.open.iter().map(|open| open.key.clone()).collect()
    }

    pub(super) fn reissued(&self) -> BTreeMap<String, u32> {
        self.reissued.clone()
    }

    /// Returns the wire key of a request.
    pub(super) fn name(&self, key: &str) -> String {
        wire_key(key, &self.reissued)
    }

    /// Opens a request.
    pub(super) fn push(&mut self, key: &str, request: Option<InputRequest>, due: Option<u64>) {
        self.issued += 1;
        let serial = self.issued;
        let key = key.to_owned();
        self.open.push(Open { key, serial, request, due, sent: false, waker: None });
    }

    /// Counts another issue of a request. Returns how many there were.
    pub(super) fn count_reissue(&mut self, key: &str) -> u32 {
        let times = self.reissued.entry(key.to_owned()).or_default();
        *times += 1;
        *times
    }

    /// Closes a request. Returns those who wait for its response.
    pub(super) fn close(&mut self, key: &str) -> Option<Waker> {
        self.remove(key)?.waker
    }

    /// Closes a request that nobody waits for. Returns its wire key if it was sent.
    pub(super) fn withdraw(&mut self, key: &str) -> Option<String> {
        self.remove(key).filter(|open| open.sent).map(|_| self.name(key))
    }

    fn remove(&mut self, key: &str) -> Option<Open> {
        let at = self.open.iter().position(|open| open.key == key)?;
        Some(self.open.remove(at))
    }

    /// Sets whom the response of an open request wakes.
    pub(super) fn set_waker(&mut self, key: &str, waker: &Waker) {
        if let Some(open) = self.open.iter_mut().find(|open| open.key == key) {
            open.waker = Some(waker.clone());
        }
    }

    /// Returns the number of the issue of an open request.
    pub(super) fn serial_of(&self, key: &str) -> Option<u64> {
        self.open.iter().find(|open| open.key == key).map(|open| open.serial)
    }

    /// Returns all open requests to the client.
    pub(super) fn shown(&self) -> Vec<OpenInputRequest> {
        self.open.iter().filter_map(|open| open.shown(&self.reissued)).collect()
    }

    /// Returns the requests that were not sent, and counts them as sent.
    pub(super) fn take_unsent(&mut self) -> Vec<OpenInputRequest> {
        let Self { open, reissued, .. } = self;
        open.iter_mut().filter_map(Open::send).filter_map(|open| open.shown(reissued)).collect()
    }

    /// Returns the requests that were not sent, for a store, and counts them as sent.
    pub(super) fn take_unwritten(&mut self) -> Vec<NewInputRequest> {
        let Self { open, reissued, .. } = self;
        let new = |open: &mut Open| NewInputRequest {
            key: open.key.clone(),
            name: wire_key(&open.key, reissued),
            request: open.request.clone(),
            due: open.due,
        };
        open.iter_mut().filter_map(Open::send).map(new).collect()
    }

    /// Keeps responses to requests that the server does not remember, in case the run makes them.
    pub(super) fn keep_unrequested(&mut self, responses: BTreeMap<String, RawJson>) {
        self.unrequested = responses;
    }

    /// Takes such a response, if it is to this request.
    pub(super) fn take_unrequested(&mut self, key: &str) -> Option<RawJson> {
        if self.unrequested.is_empty() {
            return None;
        }
        let response = self.unrequested.remove(&self.name(key))?;
        self.taken_unrequested.insert(key.to_owned());
        Some(response)
    }

    /// Returns whether the response to a request was such a response.
    pub(super) fn was_unrequested(&self, key: &str) -> bool {
        self.taken_unrequested.contains(key)
    }

    /// Notes why a value that the client sent is no response. The first reason stays.
    pub(super) fn set_malformed(&mut self, why: String) {
        self.malformed.get_or_insert(why);
    }

    pub(super) fn malformed(&self) -> Option<String> {
        self.malformed.clone()
    }

    /// Another run starts: it opens its requests again.
    pub(super) fn restart(&mut self) {
        self.open.clear();
    }
}

impl Open {
    /// Counts the request as sent; `None` if it was sent before.
    fn send(&mut self) -> Option<&mut Self> {
        (!mem::replace(&mut self.sent, true)).then_some(self)
    }

    /// Returns what the client gets, if it is to respond.
    fn shown(&self, reissued: &BTreeMap<String, u32>) -> Option<OpenInputRequest> {
        Some(OpenInputRequest {
            key: self.key.clone(),
            name: wire_key(&self.key, reissued),
            request: self.request.clone()?,
            due: self.due,
            serial: self.serial,
        })
    }
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.open.iter().map(|open| &open.key)).finish()
    }
}
