//! One slot for each open request of a process: its newest progress, its input requests and its
//! response, and the gateway that owns it.
//!
//! A message goes to the gateway that owns its request. It is stored if the slot must survive that
//! gateway, or if the gateway has no room.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    bodies::{Bodies, Body},
    members::{Members, id_text},
    peers::{PeerId, Peers},
    seen::Seen,
    spec::{AttachState, Attached, CarriedInput, SlotState},
    wire::{Frame, Kind},
};

/// Time that a retained slot without a task waits for a gateway.
const UNLABELED_TIMEOUT: Duration = Duration::from_secs(30);

/// Abandoned requests that are remembered. A response to a forgotten one is reported.
const MAX_ABANDONED: usize = 256;

/// Maximum bytes of a label.
const MAX_LABEL: usize = 4 << 10;

/// The open requests of a process.
#[derive(Debug)]
pub(super) struct Slots {
    slots: BTreeMap<u64, Slot>,
    /// Open input requests, and other requests of the process, by ID.
    inputs: BTreeMap<String, Input>,
    bodies: Bodies,
    seen: Seen,
    /// Requests that were cancelled because their gateway has gone.
    abandoned: BTreeSet<u64>,
    /// Number of the next request, in either direction.
    order: u64,
}

#[derive(Debug)]
struct Slot {
    order: u64,
    owner: Option<PeerId>,
    /// Time since when no gateway owns the slot.
    unowned_at: Instant,
    /// Time that the slot survives without a gateway.
    retained: Option<Duration>,
    label: Option<String>,
    progress: Option<Body>,
    response: Option<Body>,
    /// Whether the owner has not received the progress or the response.
    is_pending: bool,
    /// Highest number of an input request that the call has carried.
    carried: u32,
}

/// A request of the process.
#[derive(Debug)]
struct Input {
    order: u64,
    message: Body,
    /// The call that carries it, and its number there.
    call: Option<(u64, u32)>,
    sent_to: Option<PeerId>,
}

impl Slots {
    /// Returns no slots. Messages overflow into the file at `overflow`.
    pub(super) fn new(overflow: PathBuf) -> Self {
        Self::storing(Bodies::new(overflow))
    }

    fn storing(bodies: Bodies) -> Self {
        let (slots, inputs, seen) = (BTreeMap::new(), BTreeMap::new(), Seen::default());
        Self { slots, inputs, bodies, seen, abandoned: BTreeSet::new(), order: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the only request without a response, if there is exactly one.
    pub(super) fn only_open(&self) -> Option<u64> {
        let mut open = self.slots.iter().filter(|(_, slot)| slot.response.is_none());
        let (id, _) = open.next()?;
        open.next().is_none().then_some(*id)
    }

    /// Opens the slot of a request. Returns `false` if the ID has one.
    pub(super) fn open(&mut self, id: u64, owner: PeerId, retained: Option<Duration>) -> bool {
        if self.slots.contains_key(&id) {
            return false;
        }
        self.seen.insert(id);
        let slot = Slot {
            order: self.next_order(),
            owner: Some(owner),
            unowned_at: Instant::now(),
            retained,
            label: None,
            progress: None,
            response: None,
            is_pending: false,
            carried: 0,
        };
        self.slots.insert(id, slot);
        true
    }

    /// Takes a message of the process. Returns it if it must be stored and does not fit.
    pub(super) fn take(&mut self, message: Bytes, peers: &Peers) -> Result<(), Bytes> {
        match Members::read(&message) {
            Some(Members::Response { id }) => match id.parse().ok() {
                Some(id) if self.slots.contains_key(&id) => self.take_response(id, message, peers),
                // The process had responded before it saw the cancellation.
                Some(id) if self.abandoned.remove(&id) => Ok(()),
                _ => {
                    // The gateway reports a response that no request waits for.
                    if let Some(to) = self.main_peer(peers) {
                        peers.send(to, message);
                    }
                    Ok(())
                }
            },
            Some(Members::Request { id }) => self.take_input(id, message, peers),
            Some(Members::Notification { progress_token, request_id }) => {
                let call = progress_token.and_then(|token| token.parse().ok());
                if let Some(call) = call.filter(|call| self.slots.contains_key(call)) {
                    self.take_progress(call, message, peers);
                    return Ok(());
                }
                match request_id.and_then(|input| self.close_input(&input)) {
                    // Sent only to the gateway that has the input request.
                    Some(sent_to) => {
                        if let Some(peer) = sent_to {
                            peers.send(peer, message);
                        }
                    }
                    None => peers.push_all(&Frame::new(Kind::Message, 0).body(message)),
                }
                Ok(())
            }
            // The gateways report a line that is not a message.
            None => {
                peers.push_all(&Frame::new(Kind::Message, 0).body(message));
                Ok(())
            }
        }
    }

    fn take_response(&mut self, id: u64, message: Bytes, peers: &Peers) -> Result<(), Bytes> {
        // Only the first response to an open request counts.
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| slot.response.is_none()) else {
            return Ok(());
        };
        if slot.retained.is_none()
            && !slot.is_pending
            && slot.owner.is_some_and(|owner| peers.send(owner, message.clone()))
        {
            self.remove(id);
            return Ok(());
        }
        slot.response = Some(self.bodies.put(message)?);
        if let Some(progress) = slot.progress.take() {
            self.bodies.free(progress);
        }
        slot.is_pending = true;
        self.send_pending(id, peers);
        Ok(())
    }

    fn take_progress(&mut self, id: u64, message: Bytes, peers: &Peers) {
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| slot.response.is_none()) else {
            return;
        };
        let is_sent =
            !slot.is_pending && slot.owner.is_some_and(|owner| peers.send(owner, message.clone()));
        if is_sent && slot.retained.is_none() {
            return;
        }
        if let Some(older) = slot.progress.take() {
            self.bodies.free(older);
        }
        // Without room, this progress is lost, and the next one may fit.
        slot.progress = self.bodies.put_in_memory(message).ok();
        slot.is_pending = !is_sent && slot.progress.is_some();
    }

    fn take_input(&mut self, id: String, message: Bytes, peers: &Peers) -> Result<(), Bytes> {
        if self.inputs.contains_key(&id) {
            return Ok(());
        }
        let body = self.bodies.put(message.clone())?;
        let to = self.main_peer(peers).filter(|to| peers.send(*to, message));
        let order = self.next_order();
        self.inputs.insert(id, Input { order, message: body, call: None, sent_to: to });
        Ok(())
    }

    /// Returns the gateway that gets messages without a call: the owner of the newest open request,
    /// else the newest gateway.
    fn main_peer(&self, peers: &Peers) -> Option<PeerId> {
        let open = self.slots.values().filter(|slot| slot.response.is_none());
        let newest = open.filter_map(|slot| Some((slot.order, slot.owner?))).max();
        newest.map(|(_, owner)| owner).or_else(|| peers.gateways().next_back())
    }

    /// Sends the messages for which a gateway had no room.
    pub(super) fn flush(&mut self, peer: PeerId, peers: &Peers) {
        let has_pending = |slot: &Slot| slot.is_pending && slot.owner == Some(peer);
        let pending: Vec<u64> =
            self.slots.iter().filter(|(_, slot)| has_pending(slot)).map(|(id, _)| *id).collect();
        pending.into_iter().for_each(|id| self.send_pending(id, peers));
        let main = self.main_peer(peers);
        let mut unsent: Vec<(u64, String)> = Vec::new();
        for (id, input) in self.inputs.iter().filter(|(_, input)| input.sent_to.is_none()) {
            let to = match input.call.and_then(|(call, _)| self.slots.get(&call)) {
                Some(slot) => slot.owner,
                None => main,
            };
            if to == Some(peer) {
                unsent.push((input.order, id.clone()));
            }
        }
        unsent.sort_unstable();
        for (_, id) in unsent {
            let Some(input) = self.inputs.get_mut(&id) else { continue };
            let Ok(message) = self.bodies.get(&input.message) else { continue };
            if !peers.send(peer, message) {
                return;
            }
            input.sent_to = Some(peer);
        }
    }

    /// Sends the stored progress or response of a slot to its owner.
    fn send_pending(&mut self, id: u64, peers: &Peers) {
        let Some(slot) = self.slots.get_mut(&id).filter(|slot| slot.is_pending) else { return };
        let (Some(owner), Some(body)) =
            (slot.owner, slot.response.as_ref().or(slot.progress.as_ref()))
        else {
            return;
        };
        // A file that cannot be read loses the response, and the call times out.
        let Ok(message) = self.bodies.get(body) else { return };
        if !peers.send(owner, message) {
            return;
        }
        slot.is_pending = false;
        if slot.response.is_some() && slot.retained.is_none() {
            self.remove(id);
        }
    }

    /// Makes a gateway the owner of a request. Its messages follow with [`Slots::flush`].
    pub(super) fn attach(&mut self, id: u64, peer: PeerId) -> Attached {
        let Some(slot) = self.slots.get_mut(&id) else {
            let state = match self.seen.contains(id) {
                true => AttachState::Gone,
                false => AttachState::Unknown,
            };
            return Attached { state, ..Attached::default() };
        };
        slot.owner = Some(peer);
        slot.is_pending = slot.response.is_some() || slot.progress.is_some();
        let mut inputs = Vec::new();
        for (input, state) in &mut self.inputs {
            if let Some((_, number)) = state.call.filter(|(call, _)| *call == id) {
                state.sent_to = None;
                inputs.push(CarriedInput { input: input.clone(), number });
            }
        }
        let state = match slot.response.is_some() {
            true => AttachState::Responded,
            false => AttachState::Open,
        };
        Attached { state, inputs, carried: slot.carried }
    }

    /// Lets a request survive its gateway for a time.
    pub(super) fn retain(&mut self, id: u64, peer: PeerId, time: Duration) {
        if let Some(slot) = self.owned(id, peer) {
            slot.retained = Some(time);
        }
    }

    /// Records the task of a request.
    pub(super) fn label(&mut self, id: u64, peer: PeerId, label: &str) {
        if let Some(slot) = self.owned(id, peer).filter(|_| label.len() <= MAX_LABEL) {
            slot.label = Some(label.to_owned());
        }
    }

    /// Records the call that carries an input request.
    pub(super) fn carry(&mut self, id: u64, peer: PeerId, input: &str, number: u32) {
        let Some(input) = id_text(input) else { return };
        let Some(slot) = self.owned(id, peer) else { return };
        slot.carried = slot.carried.max(number);
        if let Some(input) = self.inputs.get_mut(&input) {
            input.call = Some((id, number));
            input.sent_to = Some(peer);
        }
    }

    fn owned(&mut self, id: u64, peer: PeerId) -> Option<&mut Slot> {
        self.slots.get_mut(&id).filter(|slot| slot.owner == Some(peer))
    }

    /// Closes the request of the process to which a gateway responds. Returns whether the response
    /// counts: it is the first, and the gateway may respond.
    pub(super) fn respond(&mut self, peer: PeerId, response: &[u8]) -> bool {
        let Some(Members::Response { id }) = Members::read(response) else { return false };
        let Some(input) = self.inputs.get(&id) else { return false };
        let owner = input.call.and_then(|(call, _)| self.slots.get(&call)?.owner);
        owner.is_none_or(|owner| owner == peer) && self.close_input(&id).is_some()
    }

    /// Removes a request of the process. Returns the gateway that has it.
    fn close_input(&mut self, id: &str) -> Option<Option<PeerId>> {
        let input = self.inputs.remove(id)?;
        self.bodies.free(input.message);
        Some(input.sent_to)
    }

    /// Removes the slot of a request, unless another gateway owns it. Returns whether it existed and
    /// had no response.
    pub(super) fn close(&mut self, id: u64, peer: PeerId) -> bool {
        let mine = |slot: &&Slot| slot.owner.is_none_or(|owner| owner == peer);
        let Some(slot) = self.slots.get(&id).filter(mine) else { return false };
        let is_open = slot.response.is_none();
        self.remove(id);
        is_open
    }

    fn remove(&mut self, id: u64) {
        let Some(slot) = self.slots.remove(&id) else { return };
        slot.progress.into_iter().chain(slot.response).for_each(|body| self.bodies.free(body));
        // Another call may carry its input requests.
        for input in self.inputs.values_mut() {
            if input.call.is_some_and(|(call, _)| call == id) {
                input.call = None;
            }
        }
    }

    /// Handles the end of a gateway's connection. Returns the requests that must be cancelled.
    pub(super) fn leave(&mut self, peer: PeerId) -> Vec<u64> {
        let now = Instant::now();
        let mut cancelled = Vec::new();
        for (id, slot) in self.slots.iter_mut().filter(|(_, slot)| slot.owner == Some(peer)) {
            slot.owner = None;
            slot.unowned_at = now;
            if slot.retained.is_none() {
                cancelled.push((*id, slot.response.is_none()));
            }
        }
        for input in self.inputs.values_mut().filter(|input| input.sent_to == Some(peer)) {
            input.sent_to = None;
        }
        self.remove_all(cancelled)
    }

    /// Returns the time when a slot without a gateway expires.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.slots.values().filter_map(Slot::deadline).min()
    }

    /// Removes the slots that have expired. Returns the requests that must be cancelled.
    pub(super) fn expire(&mut self) -> Vec<u64> {
        let now = Instant::now();
        let is_over = |slot: &Slot| slot.deadline().is_some_and(|deadline| deadline <= now);
        let over = self.slots.iter().filter(|(_, slot)| is_over(slot));
        let over = over.map(|(id, slot)| (*id, slot.response.is_none())).collect();
        self.remove_all(over)
    }

    /// Removes slots. Returns those without a response.
    fn remove_all(&mut self, slots: Vec<(u64, bool)>) -> Vec<u64> {
        slots.iter().for_each(|(id, _)| self.remove(*id));
        let open = slots.into_iter().filter(|(_, is_open)| *is_open).map(|(id, _)| id);
        let open: Vec<u64> = open.collect();
        let room = MAX_ABANDONED.saturating_sub(self.abandoned.len());
        self.abandoned.extend(open.iter().take(room));
        open
    }

    /// Handles the end of the process: only responses that have arrived remain.
    pub(super) fn end(&mut self) {
        let lost = self.slots.iter().filter(|(_, slot)| slot.response.is_none());
        let lost: Vec<u64> = lost.map(|(id, _)| *id).collect();
        lost.into_iter().for_each(|id| self.remove(id));
        let inputs: Vec<String> = self.inputs.keys().cloned().collect();
        for input in inputs {
            self.close_input(&input);
        }
    }

    /// Returns whether a slot must survive the end of this gateway.
    pub(super) fn any_beside(&self, peer: PeerId) -> bool {
        self.slots.values().any(|slot| slot.retained.is_some() || slot.owner != Some(peer))
    }

    /// Returns the states of all slots.
    pub(super) fn states(&self) -> Vec<SlotState> {
        let state = |(id, slot): (&u64, &Slot)| {
            let unowned = slot.owner.is_none().then(|| slot.unowned_at.elapsed());
            let unowned = unowned.unwrap_or_default().as_millis();
            SlotState {
                id: *id,
                label: slot.label.clone(),
                is_owned: slot.owner.is_some(),
                unowned_ms: u64::try_from(unowned).unwrap_or(u64::MAX),
                has_response: slot.response.is_some(),
            }
        };
        self.slots.iter().map(state).collect()
    }

    fn next_order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }
}

impl Slot {
    /// Returns the time when the slot expires, if no gateway owns it.
    fn deadline(&self) -> Option<Instant> {
        let time = self.retained.unwrap_or_default();
        let time = match self.label.is_some() {
            true => time,
            false => time.min(UNLABELED_TIMEOUT),
        };
        // A time that overflows never comes.
        self.owner.is_none().then(|| self.unowned_at.checked_add(time))?
    }
}

#[cfg(test)]
mod tests;
