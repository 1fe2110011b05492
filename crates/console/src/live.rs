//! `GET stream`: hints that something changed, as server-sent events.
//!
//! A hint has no contents: the page then fetches its part. A stream polls its own work, so it needs
//! no spawned task, and a reader that disconnects drops everything.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use outlive::{
    people::{PeopleError, TaskHint, Visitor},
    server::http::EventSource,
    store::TaskId,
};
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::{
    api::{call::ApiCall, error::ApiError},
    http::{Reply, events},
    rate_limit::StreamGuard,
    request::ConsoleRequest,
    sign_in::token::Denied,
    state::ConsoleState,
    times,
};

/// Maximum number of tasks that a stream watches.
const MAX_TASKS: usize = 200;

/// Minimum interval between the hints of a stream. A task has two kinds of hints, so there are at
/// most four per second and task.
const INTERVAL: Duration = Duration::from_millis(500);

/// Interval in which a stream checks its tasks, because change notifications may be lost, and its
/// credential, because it may be revoked.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Number of events that wait for a slow reader.
const MAX_WAITING: usize = 16;

/// Time after which a browser connects again.
const RETRY: &[u8] = b"retry: 2000\n\n";

/// Opens a stream.
pub(crate) async fn open(call: &ApiCall<'_>) -> Result<Reply, ApiError> {
    let tasks = call.query.get("tasks").unwrap_or_default().split(',');
    let tasks: BTreeSet<TaskId> =
        tasks.filter(|id| !id.is_empty()).take(MAX_TASKS).map(TaskId::new).collect();
    let session = call.signed_in.session.as_ref();
    let key = session.map_or(call.signed_in.key.as_str(), |session| session.digest.as_str());
    let guard = call.state.streams.open(key).ok_or_else(|| {
        ApiError::too_many("you have too many open streams", Duration::from_secs(5))
    })?;
    let changes = call.people().changes(call.visitor()).await?;
    let watch = Watch {
        state: Arc::clone(call.state),
        request: ConsoleRequest {
            parts: call.request.parts.clone(),
            body: Bytes::new(),
            path: call.request.path.clone(),
        },
        visitor: call.visitor().clone(),
        tasks,
        sent: BTreeMap::new(),
        inbox: None,
    };
    let (sender, receiver) = channel(MAX_WAITING);
    let work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(watch.run(changes, sender));
    Ok(events(Live { work: Some(work), events: receiver, _guard: guard }))
}

/// An open stream.
struct Live {
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    events: Receiver<Bytes>,
    _guard: StreamGuard,
}

impl EventSource for Live {
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(work) = &mut self.work
            && work.as_mut().poll(cx).is_ready()
        {
            self.work = None;
        }
        self.events.poll_recv(cx)
    }
}

/// The work of a stream.
struct Watch {
    state: Arc<ConsoleState>,
    /// The request that opened the stream, to check its credential again.
    request: ConsoleRequest,
    visitor: Visitor,
    tasks: BTreeSet<TaskId>,
    /// Last hint of each task.
    sent: BTreeMap<TaskId, TaskHint>,
    /// Last number of open input requests.
    inbox: Option<usize>,
}

impl Watch {
    /// Sends hints until the reader disconnects, the credential ends, or the server stops.
    async fn run(mut self, mut changes: outlive::people::Changes, out: Sender<Bytes>) {
        if out.send(Bytes::from_static(RETRY)).await.is_err() {
            return;
        }
        let vault = self.state.sign_in.vault.clone();
        let (mut changed, mut checked) = (self.tasks.clone(), vault.instant());
        // Boxed, so that a stream that waits needs no room for what it does then.
        while Box::pin(self.send(&changed, &out)).await.is_some() {
            vault.sleep(INTERVAL).await;
            changed.clear();
            let is_quiet = tokio::select! {
                change = changes.next() => match change {
                    Some(task) => {
                        changed.insert(task);
                        false
                    }
                    None => return,
                },
                () = vault.sleep(CHECK_INTERVAL) => true,
            };
            while let Some(task) = changes.next_ready() {
                changed.insert(task);
            }
            let now = vault.instant();
            if is_quiet || now.saturating_duration_since(checked) >= CHECK_INTERVAL {
                if !Box::pin(self.check()).await {
                    return;
                }
                checked = now;
                changed.clone_from(&self.tasks);
            }
        }
    }

    /// Sends the hints of changed tasks and of the inbox. Returns `None` at the end of the stream.
    async fn send(&mut self, changed: &BTreeSet<TaskId>, out: &Sender<Bytes>) -> Option<()> {
        #[derive(Serialize)]
        struct Inbox {
            count: usize,
        }
        match self.state.people.inbox_count(&self.visitor).await {
            Ok(count) if self.inbox != Some(count) => {
                self.inbox = Some(count);
                send(out, "inbox", &Inbox { count }).await?;
            }
            Ok(_) => {}
            // The next change or check tries again.
            Err(PeopleError::Store(_)) => return Some(()),
            Err(_) => return None,
        }
        let watched: Vec<TaskId> = self.tasks.intersection(changed).cloned().collect();
        for task in watched {
            match self.state.people.hint(&self.visitor, &task).await {
                Ok(hint) => self.send_task(task, hint, out).await?,
                Err(PeopleError::Store(_)) => return Some(()),
                // The task was deleted, or never was one of the visitor.
                Err(_) => {
                    self.tasks.remove(&task);
                }
            }
        }
        Some(())
    }

    async fn send_task(&mut self, task: TaskId, hint: TaskHint, out: &Sender<Bytes>) -> Option<()> {
        #[derive(Serialize)]
        struct Task<'a> {
            id: &'a str,
            state: &'static str,
            updated_at: &'a str,
        }
        #[derive(Serialize)]
        struct Output<'a> {
            id: &'a str,
            last: u64,
            updated_at: &'a str,
        }
        let last = self.sent.insert(task.clone(), hint.clone());
        let is_new = |same: fn(&TaskHint, &TaskHint) -> bool| {
            last.as_ref().is_none_or(|last| !same(last, &hint))
        };
        let updated_at = times::text(hint.updated_at);
        let (id, updated_at) = (task.as_str(), updated_at.as_str());
        if is_new(|one, other| (one.state, one.updated_at) == (other.state, other.updated_at)) {
            send(out, "task", &Task { id, state: hint.state.as_str(), updated_at }).await?;
        }
        if is_new(|one, other| one.last_segment == other.last_segment) {
            send(out, "output", &Output { id, last: hint.last_segment, updated_at }).await?;
        }
        Some(())
    }

    /// Checks the credential that opened the stream again. Returns whether it is still valid.
    async fn check(&mut self) -> bool {
        match self.state.sign_in.visitor(&self.request).await {
            Ok(Some(signed_in)) => {
                self.visitor = signed_in.visitor;
                true
            }
            Err(Denied::Unavailable(_)) => true,
            Ok(None) | Err(Denied::Rejected) => false,
        }
    }
}

/// Sends an event. Returns `None` if the reader has disconnected.
async fn send(out: &Sender<Bytes>, name: &str, data: &impl Serialize) -> Option<()> {
    let data = serde_json::to_string(data).ok()?;
    out.send(Bytes::from(format!("event: {name}\ndata: {data}\n\n"))).await.ok()
}
