//! Connected gateways, and the frames that wait to be sent to them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::wire::{Frame, Kind};

/// Number of frames that wait for one gateway.
pub(super) const MAX_FRAMES: usize = 256;

/// Bytes of the frames that wait for one gateway. One longer frame may wait alone.
const MAX_BYTES: usize = 1 << 20;

/// Number of a connected gateway, unique for one supervisor.
pub(super) type PeerId = u64;

/// Frames that wait for one gateway. The connection sends them.
pub(super) type Outbox = mpsc::Receiver<Queued>;

/// A frame that waits, with its part of the limit.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) frame: Frame,
    _room: Option<OwnedSemaphorePermit>,
}

/// A connected gateway.
#[derive(Debug)]
pub(super) struct Peer {
    frames: mpsc::Sender<Queued>,
    room: Arc<Semaphore>,
    /// Whether a frame did not fit since the connection sent one.
    is_full: Arc<AtomicBool>,
    observes: bool,
}

/// Connected gateways.
#[derive(Debug, Default)]
pub(super) struct Peers(BTreeMap<PeerId, Peer>);

impl Peer {
    /// Returns a gateway, its frames, and the mark that the connection clears when it has sent some.
    pub(super) fn new(observes: bool) -> (Self, Outbox, Arc<AtomicBool>) {
        let (frames, outbox) = mpsc::channel(MAX_FRAMES);
        let is_full = Arc::new(AtomicBool::new(false));
        let room = Arc::new(Semaphore::new(MAX_BYTES));
        (Self { frames, room, is_full: Arc::clone(&is_full), observes }, outbox, is_full)
    }

    /// Queues a frame. Returns `false` if the queue is full.
    fn push(&self, frame: Frame) -> bool {
        let cost = u32::try_from(frame.body.len().min(MAX_BYTES)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).try_acquire_many_owned(cost).ok();
        let is_queued =
            room.is_some() && self.frames.try_send(Queued { frame, _room: room }).is_ok();
        if !is_queued {
            self.is_full.store(true, Ordering::Release);
        }
        is_queued
    }
}

impl Peers {
    pub(super) fn add(&mut self, id: PeerId, peer: Peer) {
        self.0.insert(id, peer);
    }

    pub(super) fn remove(&mut self, id: PeerId) {
        self.0.remove(&id);
    }

    /// Closes all connections after their last frame.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = PeerId> {
        self.0.keys().copied()
    }

    /// Returns the gateways that keep the process running.
    pub(super) fn gateways(&self) -> impl DoubleEndedIterator<Item = PeerId> {
        self.0.iter().filter(|(_, peer)| !peer.observes).map(|(id, _)| *id)
    }

    /// Queues a message of the process. Returns `false` if the queue is full.
    pub(super) fn send(&self, to: PeerId, message: Bytes) -> bool {
        self.push(to, Frame::new(Kind::Message, 0).body(message))
    }

    /// Queues a frame. Returns `false` if the queue is full.
    pub(super) fn push(&self, to: PeerId, frame: Frame) -> bool {
        self.0.get(&to).is_some_and(|peer| peer.push(frame))
    }

    /// Queues a reply, beyond the limit of bytes. A gateway that does not read is disconnected.
    pub(super) fn reply(&mut self, to: PeerId, frame: Frame) {
        let Some(peer) = self.0.get(&to) else { return };
        if peer.frames.try_send(Queued { frame, _room: None }).is_err() {
            self.0.remove(&to);
        }
    }

    /// Queues a frame for each gateway that has room.
    pub(super) fn push_all(&self, frame: &Frame) {
        for peer in self.0.values().filter(|peer| !peer.observes) {
            peer.push(frame.clone());
        }
    }
}
