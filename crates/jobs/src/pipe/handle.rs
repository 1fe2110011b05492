//! The receiving side of a connection to a supervisor.

use std::{io, time::Duration};

use bytes::Bytes;
use tokio::{net::unix::OwnedReadHalf, time::timeout};

use super::{
    super::{
        error::{Error, Result},
        folder::Folder,
        socket,
        spec::How,
    },
    sender::PipeSender,
    spec::{Attached, PipeHello, StoredSpec},
    wire::{Frame, Frames, HEAD, Kind, MAX_BODY},
};

/// Time for a supervisor to welcome a gateway. It may be ending its process.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to a supervised process. Dropping it and all its senders closes the connection.
#[derive(Debug)]
pub struct Pipe {
    id: String,
    hello: PipeHello,
    frames: Frames<OwnedReadHalf>,
    sender: PipeSender,
}

/// Event of a supervised process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum PipeEvent {
    /// A message of the process.
    Message(Bytes),
    /// A line of standard error.
    Stderr(String),
    /// The supervisor sends the messages of the request to this gateway from now on, if it has the
    /// request.
    Attached {
        /// ID of the request.
        id: u64,
        /// State of the request.
        attached: Attached,
    },
    /// The process has ended. Responses that arrived before remain available.
    Exit(How),
    /// The process was not ended, because others use it.
    Kept,
}

impl Pipe {
    /// Connects to the supervisor of a folder. Returns `None` if it does not accept connections.
    pub(super) async fn connect(folder: &Folder, observes: bool) -> Result<Option<Self>> {
        let problem = || Error::io("connect to the supervisor of", folder.path());
        let Some(path) = folder.control().map_err(problem())? else { return Ok(None) };
        let Ok(stream) = socket::connect(&path).await else { return Ok(None) };
        let StoredSpec { pipe } = folder.read_spec().map_err(problem())?;
        let max = pipe.map_or(MAX_BODY, |spec| MAX_BODY.max(spec.max_message_bytes + HEAD));
        let (read, write) = stream.into_split();
        let sender = PipeSender::new(write);
        sender.hello(folder.id(), observes);
        let mut frames = Frames::new(read, max);
        let first = timeout(WELCOME_TIMEOUT, frames.next()).await;
        let first = match first.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
            Ok(Some(first)) => first,
            Ok(None) => return Ok(None),
            Err(error) => return Err(problem()(error)),
        };
        let hello = first.read_json().filter(|_| first.kind == Kind::Welcome);
        let Some(hello) = hello else {
            return Err(problem()(io::ErrorKind::InvalidData.into()));
        };
        Ok(Some(Self { id: folder.id().to_owned(), hello, frames, sender }))
    }

    /// Returns the ID of the process.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the state when the connection was opened.
    pub fn hello(&self) -> &PipeHello {
        &self.hello
    }

    /// Returns the sending side.
    pub fn sender(&self) -> PipeSender {
        self.sender.clone()
    }

    /// Returns the next event, or `None` when the connection has ended. Without
    /// [`PipeEvent::Exit`] before, the supervisor was killed. Cancel safe.
    pub async fn next(&mut self) -> Option<PipeEvent> {
        loop {
            // A supervisor that was killed and one that breaks the protocol are equally lost.
            let frame = self.frames.next().await.ok()??;
            if let Some(event) = read(frame) {
                return Some(event);
            }
        }
    }
}

/// Returns the event of a frame. A frame that cannot be read is skipped.
fn read(frame: Frame) -> Option<PipeEvent> {
    match frame.kind {
        Kind::Message => Some(PipeEvent::Message(frame.body)),
        Kind::Stderr => Some(PipeEvent::Stderr(String::from_utf8_lossy(&frame.body).into_owned())),
        Kind::Attached => {
            let attached = frame.read_json()?;
            Some(PipeEvent::Attached { id: frame.id, attached })
        }
        Kind::Exit => frame.read_json().map(PipeEvent::Exit),
        Kind::Kept => Some(PipeEvent::Kept),
        _ => None,
    }
}
