//! Connections of gateways to a supervisor.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::AsyncWriteExt,
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    super::socket::is_ours,
    input,
    peers::{Outbox, Peer, PeerId},
    wire::{Frame, Frames, Greeting, Kind},
};

/// Maximum number of connected gateways.
const MAX_CONNECTIONS: usize = 64;
/// Time for a connection to send its first frame, and to receive the last ones.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Delay after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(10);
/// Bytes that are sent at once.
const BATCH: usize = 64 << 10;

/// Event of a connection.
#[derive(Debug)]
pub(super) enum Request {
    Joined { peer: PeerId, gateway: Peer },
    Frame { peer: PeerId, frame: Frame, room: Option<OwnedSemaphorePermit> },
    Left { peer: PeerId },
}

/// Connections of one supervisor, and what they share.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    /// ID of the process.
    pub(super) pipe: Arc<str>,
    pub(super) requests: mpsc::Sender<Request>,
    /// Signaled when a gateway that had no room has received frames.
    pub(super) drained: Arc<Notify>,
    /// Room for messages to the process.
    pub(super) room: Arc<Semaphore>,
    pub(super) max_body: usize,
}

impl Connections {
    /// Serves connections until dropped, or until `done` completes and all have their last frames.
    pub(super) async fn serve(self, listener: UnixListener, done: Arc<Notify>) {
        let mut connections = JoinSet::new();
        let mut peers = 0;
        loop {
            tokio::select! {
                () = done.notified() => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) if connections.len() < MAX_CONNECTIONS && is_ours(&stream) => {
                        peers += 1;
                        connections.spawn(self.clone().connection(stream, peers));
                    }
                    // A rejected gateway sees the closed connection and retries.
                    Ok(_) => {}
                    // The process has no descriptors left. Pending connections can be accepted
                    // later.
                    Err(_) => sleep(PAUSE).await,
                },
            }
        }
        drop(listener);
        let _ = timeout(PATIENCE, async { while connections.join_next().await.is_some() {} }).await;
    }

    async fn connection(self, stream: UnixStream, peer: PeerId) {
        let (read, write) = stream.into_split();
        let mut frames = Frames::new(read, self.max_body);
        let Ok(Ok(Some(first))) = timeout(PATIENCE, frames.next()).await else { return };
        let greeting = first.read_json::<Greeting>().filter(|_| first.kind == Kind::Hello);
        let Some(greeting) = greeting.filter(|greeting| *greeting.pipe == *self.pipe) else {
            return;
        };
        let (gateway, outbox, is_full) = Peer::new(greeting.observes);
        if self.requests.send(Request::Joined { peer, gateway }).await.is_err() {
            return;
        }
        tokio::select! {
            () = self.receive(frames, peer) => {}
            () = self.send(write, outbox, &is_full) => {}
        }
        // An error means that the supervisor ends.
        let _ = self.requests.send(Request::Left { peer }).await;
    }

    async fn receive(&self, mut frames: Frames<OwnedReadHalf>, peer: PeerId) {
        while let Ok(Some(frame)) = frames.next().await {
            let room = match frame.kind {
                Kind::Write | Kind::Request => {
                    let bytes = frame.body.len().min(input::MAX_BYTES);
                    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                    Arc::clone(&self.room).acquire_many_owned(bytes).await.ok()
                }
                _ => None,
            };
            if self.requests.send(Request::Frame { peer, frame, room }).await.is_err() {
                return;
            }
        }
    }

    /// Sends frames until the supervisor drops the gateway.
    async fn send(&self, mut write: OwnedWriteHalf, mut outbox: Outbox, is_full: &AtomicBool) {
        let mut out = BytesMut::new();
        while let Some(queued) = outbox.recv().await {
            queued.frame.write(&mut out, false);
            while out.len() < BATCH
                && let Ok(queued) = outbox.try_recv()
            {
                queued.frame.write(&mut out, false);
            }
            if write.write_all(&out).await.is_err() {
                return;
            }
            match out.capacity() > 2 * BATCH {
                true => out = BytesMut::new(),
                false => out.clear(),
            }
            if is_full.swap(false, Ordering::AcqRel) {
                self.drained.notify_one();
            }
        }
        // The gateway sees the end after the last frame.
        let _ = write.shutdown().await;
    }
}
