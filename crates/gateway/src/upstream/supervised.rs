//! A process behind a supervisor: the transport of a client, and the instructions of its calls.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use outlive::{
    client::transport::OpenedTransport,
    transport::{Sink, Source},
    wire::Method,
};
use outlive_jobs::{Attached, How, Members, Pipe, PipeEvent, PipeSender, Retention};
use tokio::sync::{oneshot, watch};

/// Time for a supervisor to end a process: longer than its three attempts together.
const END_TIMEOUT: Duration = Duration::from_secs(25);

/// Receiver of the lines of standard error.
pub(super) type OnStderr = Arc<dyn Fn(&str) + Send + Sync>;

/// A connection to a supervised process.
#[derive(Debug)]
pub(crate) struct Supervised {
    id: String,
    pub(crate) sender: PipeSender,
    /// Whether the process runs and was started with the settings of its upstream.
    serves_new_calls: bool,
    /// End of the process, if it had ended before the connection was opened.
    ended: Option<How>,
    state: watch::Sender<PipeState>,
    /// Requests to which this gateway attaches.
    attaching: Mutex<HashMap<u64, Attaching>>,
    /// Requests that are retained when they are sent.
    retained: Mutex<HashMap<u64, Retention>>,
}

/// State of a supervised process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PipeState {
    Open,
    /// Others use the process, so it was not ended.
    Kept,
    Exited(How),
    /// The supervisor was killed.
    Lost,
}

impl PipeState {
    /// Describes how the process has ended.
    pub(super) fn exit_text(&self) -> String {
        match self {
            Self::Exited(How::Code(code)) => format!("exited with code {code}"),
            Self::Exited(How::Signal(signal)) => format!("was ended by signal {signal}"),
            Self::Exited(_) => "was ended".to_owned(),
            Self::Lost => "was lost with its supervisor".to_owned(),
            Self::Open | Self::Kept => "closed its output".to_owned(),
        }
    }
}

/// A request to which this gateway attaches.
struct Attaching {
    /// Called before the messages of the request arrive.
    prepare: Box<dyn FnOnce(&Attached) + Send>,
    attached: oneshot::Sender<Attached>,
}

impl std::fmt::Debug for Attaching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attaching").finish_non_exhaustive()
    }
}

impl Supervised {
    /// Returns the connection, and the transport of its client.
    pub(super) fn open(
        pipe: Pipe,
        has_same_settings: bool,
        on_stderr: OnStderr,
    ) -> (Arc<Self>, OpenedTransport) {
        let supervised = Arc::new(Self {
            id: pipe.id().to_owned(),
            sender: pipe.sender(),
            serves_new_calls: has_same_settings && pipe.hello().exit.is_none(),
            ended: pipe.hello().exit.clone(),
            state: watch::Sender::new(PipeState::Open),
            attaching: Mutex::default(),
            retained: Mutex::default(),
        });
        let source = Incoming { pipe, supervised: Arc::clone(&supervised), on_stderr };
        let sink = Outgoing { supervised: Arc::clone(&supervised) };
        (supervised, OpenedTransport::messages(source, sink))
    }

    /// Returns the ID of the process.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Returns whether new calls can use the process. One that had ended before the connection was
    /// opened, or that has other settings than its upstream now, is for the calls that it has.
    pub(super) fn serves_new_calls(&self) -> bool {
        self.serves_new_calls
    }

    /// Retains a request when it is sent.
    pub(crate) fn retain_next(&self, id: u64, retention: Retention) {
        lock(&self.retained).insert(id, retention);
    }

    /// Makes this gateway the owner of a request. Calls `prepare` before the messages of the request
    /// arrive. Returns `None` if the connection ends.
    pub(crate) async fn attach(
        &self,
        id: u64,
        prepare: impl FnOnce(&Attached) + Send + 'static,
    ) -> Option<Attached> {
        let (attached, reply) = oneshot::channel();
        let attaching = Attaching { prepare: Box::new(prepare), attached };
        lock(&self.attaching).insert(id, attaching);
        // A connection that ended before has emptied the map already.
        if *self.state.borrow() != PipeState::Open {
            lock(&self.attaching).remove(&id);
            return None;
        }
        self.sender.attach(id);
        reply.await.ok()
    }

    /// Cancels a request that no connection owns, or that this one owns.
    pub(crate) fn cancel(&self, id: u64) {
        let (before, after) = cancel_message();
        self.sender.cancel(id, format!("{before}{id}{after}").into());
    }

    fn take_attached(&self, id: u64, attached: Attached) {
        if let Some(attaching) = lock(&self.attaching).remove(&id) {
            (attaching.prepare)(&attached);
            // The call may have ended.
            let _ = attaching.attached.send(attached);
        }
    }

    /// Ends the process, unless others use it, and waits for that.
    pub(crate) async fn end(&self) -> PipeState {
        let mut state = self.state.subscribe();
        if *state.borrow() == PipeState::Open {
            self.sender.end(false);
        }
        let ended = state.wait_for(|state| *state != PipeState::Open);
        let ended = tokio::time::timeout(END_TIMEOUT, ended).await;
        ended.ok().and_then(Result::ok).map_or(PipeState::Open, |state| state.clone())
    }

    /// Ends the process as [`Supervised::end`] does, without waiting.
    pub(super) fn end_later(&self) {
        self.sender.end(false);
    }

    pub(crate) fn state(&self) -> PipeState {
        self.state.borrow().clone()
    }

    fn set_state(&self, state: PipeState) {
        let is_over = state != PipeState::Kept;
        self.state.send_replace(state);
        if is_over {
            // Dropping the senders ends the waits.
            lock(&self.attaching).clear();
        }
    }
}

/// Returns the text before and after the ID in the message that cancels a request.
pub(super) fn cancel_message() -> (String, String) {
    let method = Method::Cancelled.as_str();
    (
        format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"requestId":"#),
        r#","reason":"the client no longer waits for the result"}}"#.to_owned(),
    )
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Messages of the process.
struct Incoming {
    pipe: Pipe,
    supervised: Arc<Supervised>,
    on_stderr: OnStderr,
}

impl Source for Incoming {
    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            match self.pipe.next().await {
                Some(PipeEvent::Message(message)) => return Ok(Some(message)),
                Some(PipeEvent::Stderr(line)) => (self.on_stderr)(&line),
                Some(PipeEvent::Attached { id, attached }) => {
                    self.supervised.take_attached(id, attached);
                }
                Some(PipeEvent::Kept) => self.supervised.set_state(PipeState::Kept),
                Some(PipeEvent::Exit(how)) => {
                    self.supervised.set_state(PipeState::Exited(how));
                    return Ok(None);
                }
                Some(_) => {}
                None => {
                    let ended = self.supervised.ended.clone();
                    self.supervised.set_state(ended.map_or(PipeState::Lost, PipeState::Exited));
                    return Ok(None);
                }
            }
        }
    }
}

/// Messages to the process.
struct Outgoing {
    supervised: Arc<Supervised>,
}

impl Sink for Outgoing {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        let Supervised { sender, retained, .. } = &*self.supervised;
        match Members::read(&message) {
            Some(Members::Request { id }) => match id.parse() {
                Ok(id) => {
                    let retention = lock(retained).remove(&id);
                    sender.request(id, message, retention.as_ref()).await;
                }
                Err(_) => sender.write(message).await,
            },
            Some(Members::Response { .. }) => sender.respond(message).await,
            // The only notification about a request cancels it.
            Some(Members::Notification { request_id: Some(id), .. }) => match id.parse() {
                Ok(id) => sender.cancel(id, message),
                Err(_) => sender.write(message).await,
            },
            _ => sender.write(message).await,
        }
        Ok(())
    }
}
