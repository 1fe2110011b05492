//! Input requests of a run, and responses that arrived without a request state.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, mem,
    task::Waker,
};

use outlive_wire::{InputRequest, RawJson};

use crate::{
    record::{InputFailure, wire_key, written},
    store::{Audience, Binding, NewInputRequest},
};

/// Input requests of a run.
#[derive(Default)]
pub(super) struct Inputs {
    /// Open requests, in the order of their issue.
    open: Vec<Open>,
    /// Number of requests that this journal has issued.
    issued: u64,
    /// Number of reissues per request, after invalid responses.
    reissued: BTreeMap<String, u32>,
    /// Responses that arrived without a request state, by wire key.
    unrequested: BTreeMap<String, RawJson>,
    /// Journal keys whose response came from `unrequested`.
    taken_unrequested: BTreeSet<String>,
    /// Reason why a value from the client is not a valid response.
    malformed: Option<String>,
}

struct Open {
    key: String,
    serial: u64,
    /// Request to the client; `None` if another system responds.
    request: Option<InputRequest>,
    audience: Audience,
    due: Option<u64>,
    /// Binding of an approval request; `None` for other requests.
    binding: Option<Binding>,
    sent: bool,
    waker: Option<Waker>,
}

/// Journal key of approval requests, and wire key of the first one. An author's key cannot start
/// with `#`.
pub const APPROVAL: &str = "#approval";

/// Journal key and wire key of the external event that a caller waits for its approved call. An
/// author's key cannot start with `#`.
pub const START: &str = "#start";

/// An approval request.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the upper layer")]
pub struct ApprovalRequest {
    /// Request to the people or to the caller.
    pub request: InputRequest,
    /// Parties that may decide.
    pub audience: Audience,
    /// When the request times out, in milliseconds since 1970.
    pub due: u64,
    /// Call and definition that an approval covers.
    pub binding: Binding,
}

/// State of an input request.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a request is open, answered or failed")]
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
#[expect(clippy::exhaustive_structs, reason = "created here, and sent by the upper layer")]
pub struct OpenInputRequest {
    /// Journal key.
    pub key: String,
    /// Wire key.
    pub name: String,
    /// Request to send.
    pub request: InputRequest,
    /// Parties that may respond.
    pub audience: Audience,
    /// When the request times out, in milliseconds since 1970.
    pub due: Option<u64>,
    /// Issue number, unique within the journal.
    pub serial: u64,
}

impl Inputs {
    /// Creates the requests of a continued journal.
    pub(super) fn from_reissued(reissued: BTreeMap<String, u32>) -> Self {
        Self { reissued, ..Self::default() }
    }

    /// Returns the size of the open requests and the reissue counts in a snapshot, in bytes.
    pub(super) fn size(&self) -> usize {
        // Per request: a key, its kind and a comma.
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

    /// Returns the deadlines of the open requests.
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
    pub(super) fn push(
        &mut self,
        key: &str,
        request: Option<InputRequest>,
        audience: Audience,
        due: Option<u64>,
    ) {
        self.issued += 1;
        self.open.push(Open {
            key: key.to_owned(),
            serial: self.issued,
            request,
            audience,
            due,
            binding: None,
            sent: false,
            waker: None,
        });
    }

    /// Opens an approval request.
    pub(super) fn push_bound(&mut self, key: &str, approval: ApprovalRequest) {
        let ApprovalRequest { request, audience, due, binding } = approval;
        self.push(key, Some(request), audience, Some(due));
        if let Some(open) = self.open.last_mut() {
            open.binding = Some(binding);
        }
    }

    /// Counts another issue of a request. Returns the number of reissues.
    pub(super) fn count_reissue(&mut self, key: &str) -> u32 {
        let times = self.reissued.entry(key.to_owned()).or_default();
        *times += 1;
        *times
    }

    /// Closes a request. Returns the waker of the branch that awaits its response.
    pub(super) fn close(&mut self, key: &str) -> Option<Waker> {
        self.remove(key)?.waker
    }

    /// Closes a request that the run no longer awaits. Returns its wire key if it was sent.
    pub(super) fn withdraw(&mut self, key: &str) -> Option<String> {
        self.remove(key).filter(|open| open.sent).map(|_| self.name(key))
    }

    fn remove(&mut self, key: &str) -> Option<Open> {
        let at = self.open.iter().position(|open| open.key == key)?;
        Some(self.open.remove(at))
    }

    /// Sets the waker for the response to an open request.
    pub(super) fn set_waker(&mut self, key: &str, waker: &Waker) {
        if let Some(open) = self.open.iter_mut().find(|open| open.key == key) {
            open.waker = Some(waker.clone());
        }
    }

    /// Returns the issue number of an open request.
    pub(super) fn serial_of(&self, key: &str) -> Option<u64> {
        self.open.iter().find(|open| open.key == key).map(|open| open.serial)
    }

    /// Returns all open requests to the client.
    pub(super) fn shown(&self) -> Vec<OpenInputRequest> {
        self.open.iter().filter_map(|open| open.shown(&self.reissued)).collect()
    }

    /// Returns the unsent requests to the client, and marks them as sent.
    pub(super) fn take_unsent(&mut self) -> Vec<OpenInputRequest> {
        let Self { open, reissued, .. } = self;
        open.iter_mut().filter_map(Open::send).filter_map(|open| open.shown(reissued)).collect()
    }

    /// Returns the unsent requests for the store, and marks them as sent.
    pub(super) fn take_unwritten(&mut self) -> Vec<NewInputRequest> {
        let Self { open, reissued, .. } = self;
        let new = |open: &mut Open| NewInputRequest {
            key: open.key.clone(),
            name: wire_key(&open.key, reissued),
            request: open.request.clone(),
            audience: open.audience.clone(),
            due: open.due,
            binding: open.binding.clone(),
        };
        open.iter_mut().filter_map(Open::send).map(new).collect()
    }

    /// Keeps responses that arrived without a request state until the run makes their requests.
    pub(super) fn keep_unrequested(&mut self, responses: BTreeMap<String, RawJson>) {
        self.unrequested = responses;
    }

    /// Takes the response that arrived without a request state for this request, if there is one.
    pub(super) fn take_unrequested(&mut self, key: &str) -> Option<RawJson> {
        if self.unrequested.is_empty() {
            return None;
        }
        let response = self.unrequested.remove(&self.name(key))?;
        self.taken_unrequested.insert(key.to_owned());
        Some(response)
    }

    /// Returns whether the response to a request arrived without a request state.
    pub(super) fn was_unrequested(&self, key: &str) -> bool {
        self.taken_unrequested.contains(key)
    }

    /// Records why a value from the client is not a valid response. The first reason stays.
    pub(super) fn set_malformed(&mut self, why: String) {
        self.malformed.get_or_insert(why);
    }

    pub(super) fn malformed(&self) -> Option<String> {
        self.malformed.clone()
    }

    /// Closes all requests, because the next run opens its requests again.
    pub(super) fn restart(&mut self) {
        self.open.clear();
    }
}

impl Open {
    /// Marks the request as sent. Returns `None` if it was sent before.
    fn send(&mut self) -> Option<&mut Self> {
        (!mem::replace(&mut self.sent, true)).then_some(self)
    }

    /// Returns the request in the form for the client; `None` if another system responds.
    fn shown(&self, reissued: &BTreeMap<String, u32>) -> Option<OpenInputRequest> {
        Some(OpenInputRequest {
            key: self.key.clone(),
            name: wire_key(&self.key, reissued),
            request: self.request.clone()?,
            audience: self.audience.clone(),
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
