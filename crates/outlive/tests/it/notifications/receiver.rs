//! An HTTP receiver with scripted responses, and a server that notifies it.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    http::{HeaderMap, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use outlive::{
    deliveries::{NetworkPolicy, Target, Webhook},
    server::{
        Server, ServerBuilder, Tool,
        tasks::{TaskConfig, TaskPolicy},
    },
    store::MemoryStore,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Notify, task::AbortHandle, time::timeout};

use crate::support::pipe::{Pipe, result};

pub(super) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// A scripted response.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Status(u16),
    /// A status with a header.
    With(u16, &'static str, String),
    /// No response.
    Hang,
}

/// A received request.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// A receiver. It replies with the scripted responses in order, then with 204.
pub(super) struct Receiver {
    pub(super) url: String,
    state: Arc<State>,
    serving: AbortHandle,
}

#[derive(Default)]
struct State {
    replies: Mutex<VecDeque<Reply>>,
    received: Mutex<Vec<Received>>,
    changed: Notify,
    open: AtomicUsize,
    most_open: AtomicUsize,
}

/// Counts an open request, until dropped.
struct Open(Arc<State>);

impl Open {
    fn new(state: &Arc<State>) -> Self {
        let open = state.open.fetch_add(1, Ordering::AcqRel) + 1;
        state.most_open.fetch_max(open, Ordering::AcqRel);
        Self(Arc::clone(state))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Receiver {
    pub(super) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let state = Arc::new(State::default());
        state.replies.lock().unwrap().extend(replies);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiving = Arc::clone(&state);
        let app = Router::new().fallback(move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let state = Arc::clone(&receiving);
            async move { receive(&state, &uri, headers, &body).await }
        });
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { url, state, serving: serving.abort_handle() }
    }

    /// Returns a signed webhook to this receiver.
    pub(super) fn webhook(&self) -> Webhook {
        Webhook::new(&self.url).secret(SECRET).network(NetworkPolicy::Local)
    }

    pub(super) fn target(&self, name: &str) -> Target {
        Target::new(name, self.webhook())
    }

    /// Waits until a number of requests has arrived, and returns them.
    pub(super) async fn wait_for(&self, count: usize) -> Vec<Received> {
        let all = async {
            loop {
                let changed = self.state.changed.notified();
                let received = self.received();
                if received.len() >= count {
                    return received;
                }
                changed.await;
            }
        };
        let waited = timeout(Duration::from_secs(20), all).await;
        waited.unwrap_or_else(|_| panic!("{count} requests expected: {:?}", self.received()))
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.state.received.lock().unwrap().clone()
    }

    /// Returns the largest number of requests that were open at once.
    pub(super) fn most_open(&self) -> usize {
        self.state.most_open.load(Ordering::Acquire)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn receive(state: &Arc<State>, uri: &Uri, headers: HeaderMap, body: &Bytes) -> Response {
    let _open = Open::new(state);
    let (path, body) = (uri.path().to_owned(), String::from_utf8(body.to_vec()).unwrap());
    let reply = state.replies.lock().unwrap().pop_front();
    state.received.lock().unwrap().push(Received { path, headers, body });
    state.changed.notify_waiters();
    let status = |code| StatusCode::from_u16(code).unwrap();
    match reply {
        None => StatusCode::NO_CONTENT.into_response(),
        Some(Reply::Status(code)) => status(code).into_response(),
        Some(Reply::With(code, name, value)) => (status(code), [(name, value)]).into_response(),
        Some(Reply::Hang) => pending().await,
    }
}

/// A builder with the tool `deploy`, which ends at once as a task.
pub(super) fn builder(store: &Arc<MemoryStore>) -> ServerBuilder {
    Server::builder("shop", "1")
        .public_url("https://shop.example/tools/")
        .tasks(TaskConfig::people(Arc::clone(store) as _))
        .tool(Tool::new("deploy", async || "deployed").task(TaskPolicy::Always))
}

/// Starts a server that notifies a target.
pub(super) fn serve(store: &Arc<MemoryStore>, target: impl Into<Target>) -> (Server, Pipe) {
    let server = builder(store).notify(target).build().unwrap();
    let pipe = Pipe::open(&server);
    (server, pipe)
}

/// Sends a request of a client with tasks.
async fn request(pipe: &mut Pipe, method: &str, params: Value) -> Value {
    let capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    result(&pipe.modern_with(capabilities, method, params).await)
}

/// Calls a tool as a task, and returns the task ID.
pub(super) async fn call(pipe: &mut Pipe, tool: &str) -> String {
    let task = request(pipe, "tools/call", json!({"name": tool})).await;
    task["taskId"].as_str().unwrap().to_owned()
}

/// Waits until a task has completed.
pub(super) async fn until_completed(pipe: &mut Pipe, task: &str) {
    for _ in 0..500 {
        let found = request(pipe, "tasks/get", json!({"taskId": task})).await;
        if found["status"] == "completed" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{task} never completed");
}
