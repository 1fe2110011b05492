//! A test client for both eras that responds to input requests as a test specifies.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use outlive::{
    Form,
    server::{Clock, Server, ServerBuilder, Tool},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::support::pipe::{LEGACY, MODERN, Pipe};

/// A version on which a call waits for input, and one on which it is suspended.
pub(super) const WIRES: [&str; 2] = [LEGACY[3], MODERN];

/// The form that most tests elicit.
#[derive(Debug, Deserialize, JsonSchema, Form)]
pub(super) struct Approval {
    pub(super) yes: bool,
}

/// Builds a server with these tools.
pub(super) fn server(tools: impl IntoIterator<Item = Tool>) -> Server {
    builder(tools).build().unwrap()
}

/// Returns a server builder with these tools.
pub(super) fn builder(tools: impl IntoIterator<Item = Tool>) -> ServerBuilder {
    let builder = Server::builder("asks", "1").clock(PausedClock::new());
    tools.into_iter().fold(builder, ServerBuilder::tool)
}

/// The capabilities of a client that supports every input request.
pub(super) fn everything() -> Value {
    json!({
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"tools": {}, "context": {}},
        "roots": {},
    })
}

pub(super) fn accept(content: Value) -> Value {
    json!({"action": "accept", "content": content})
}

pub(super) fn decline() -> Value {
    json!({"action": "decline"})
}

pub(super) fn cancel() -> Value {
    json!({"action": "cancel"})
}

/// A client on a pipe, with its protocol version and capabilities.
pub(super) struct Talk {
    pub(super) pipe: Pipe,
    version: String,
    can: Value,
}

/// The outcome of a call.
#[derive(Debug)]
pub(super) struct Played {
    /// The response.
    pub(super) answer: Value,
    /// Method and parameters of each input request, in order.
    pub(super) asked: Vec<Value>,
    /// Notifications before the response.
    pub(super) told: Vec<Value>,
}

impl Talk {
    /// Connects a client that supports every input request.
    pub(super) async fn open(server: &Server, version: &str) -> Self {
        Self::open_with(server, version, everything()).await
    }

    /// Connects a client with these capabilities.
    pub(super) async fn open_with(server: &Server, version: &str, can: Value) -> Self {
        let mut pipe = Pipe::open(server);
        if version != MODERN {
            pipe.legacy_with(version, can.clone()).await;
        }
        Self { pipe, version: version.to_owned(), can }
    }

    /// Sends a request, responds to each input request, and returns the outcome.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: Value,
        mut answer: impl FnMut(&Value) -> Value,
    ) -> Played {
        match self.version == MODERN {
            true => self.rounds(method, params, &mut answer).await,
            false => self.wait(method, params, &mut answer).await,
        }
    }

    /// Calls a tool without arguments and responds to each input request.
    pub(super) async fn call(&mut self, tool: &str, answer: impl FnMut(&Value) -> Value) -> Played {
        self.request("tools/call", json!({"name": tool}), answer).await
    }

    /// Calls a tool that must not request input.
    pub(super) async fn call_quietly(&mut self, tool: &str) -> Value {
        self.call(tool, |asked| panic!("unexpected input request: {asked}")).await.answer
    }

    /// Sends one round of a modern request.
    pub(super) async fn once(&mut self, method: &str, params: Value) -> Value {
        self.pipe.modern_with(self.can.clone(), method, params).await
    }

    /// Sends the first round of a modern call without arguments.
    pub(super) async fn begin(&mut self, tool: &str) -> Value {
        self.once("tools/call", json!({"name": tool})).await
    }

    /// Sends the round after `before` of a modern call without arguments.
    pub(super) async fn back(&mut self, tool: &str, before: &Value, responses: Value) -> Value {
        let state = state_of(before);
        let params = json!({"name": tool, "requestState": state, "inputResponses": responses});
        self.once("tools/call", params).await
    }

    async fn rounds(
        &mut self,
        method: &str,
        mut params: Value,
        answer: &mut dyn FnMut(&Value) -> Value,
    ) -> Played {
        let mut asked = Vec::new();
        loop {
            let message = self.once(method, params.clone()).await;
            if message["result"]["resultType"] != "input_required" {
                return Played { answer: message, asked, told: Vec::new() };
            }
            let mut responses = Map::new();
            for (key, request) in &questions(&message) {
                responses.insert(key.clone(), answer(request));
                asked.push(request.clone());
            }
            params["requestState"] = message["result"]["requestState"].clone();
            params["inputResponses"] = responses.into();
        }
    }

    async fn wait(
        &mut self,
        method: &str,
        params: Value,
        answer: &mut dyn FnMut(&Value) -> Value,
    ) -> Played {
        let id = self.pipe.send(method, params).await;
        let (mut asked, mut told) = (Vec::new(), Vec::new());
        loop {
            let message = self.pipe.read().await;
            match (message.get("method"), message.get("id")) {
                (None, _) => {
                    assert_eq!(message["id"], id, "{message}");
                    return Played { answer: message, asked, told };
                }
                (Some(_), None) => told.push(message),
                (Some(_), Some(_)) => {
                    let result = answer(&message);
                    self.pipe.reply(&message, result).await;
                    asked.push(json!({"method": message["method"], "params": message["params"]}));
                }
            }
        }
    }
}

impl Played {
    /// Returns the text of a tool result or a tool error.
    #[track_caller]
    pub(super) fn text(&self) -> &str {
        text_of(&self.answer)
    }

    /// Returns the messages of the elicited forms.
    pub(super) fn messages(&self) -> Vec<&str> {
        self.asked.iter().filter_map(|asked| asked["params"]["message"].as_str()).collect()
    }
}

/// Returns the last text of the tool result in a response.
#[track_caller]
pub(super) fn text_of(answer: &Value) -> &str {
    let texts = answer["result"]["content"].as_array();
    let last = texts.and_then(|texts| texts.last()).unwrap_or(&Value::Null);
    last["text"].as_str().unwrap_or_else(|| panic!("a text was expected: {answer}"))
}

/// Returns all texts of the tool result in a response.
#[track_caller]
pub(super) fn texts_of(answer: &Value) -> Vec<&str> {
    let content = answer["result"]["content"].as_array();
    let content = content.unwrap_or_else(|| panic!("a result was expected: {answer}"));
    content.iter().filter_map(|block| block["text"].as_str()).collect()
}

/// Asserts that the response is a tool error, and returns its text.
#[track_caller]
pub(super) fn failure_of(answer: &Value) -> &str {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    text_of(answer)
}

/// Returns code and message of a protocol error.
#[track_caller]
pub(super) fn refusal_of(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    match (error["code"].as_i64(), error["message"].as_str()) {
        (Some(code), Some(message)) => (code, message),
        _ => panic!("expected an error: {answer}"),
    }
}

/// Returns the request state of an `input_required` response.
#[track_caller]
pub(super) fn state_of(answer: &Value) -> String {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"]["requestState"].as_str().expect("a state").to_owned()
}

/// Returns the input requests of an `input_required` response, by key.
#[track_caller]
pub(super) fn questions(answer: &Value) -> Map<String, Value> {
    assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
    answer["result"]["inputRequests"].as_object().cloned().unwrap_or_default()
}

/// Returns the keys of the input requests of an `input_required` response, in order.
#[track_caller]
pub(super) fn keys(answer: &Value) -> Vec<String> {
    questions(answer).keys().cloned().collect()
}

/// The time of the tokio runtime, with a wall clock that follows it.
#[derive(Clone, Debug)]
pub(super) struct PausedClock(tokio::time::Instant);

impl PausedClock {
    /// Without a runtime, the clock stands still.
    pub(super) fn new() -> Self {
        Self(tokio::time::Instant::now())
    }
}

impl Clock for PausedClock {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn wall(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_800_000_000) + self.0.elapsed()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(span))
    }
}

/// A record of events, in order, outside the journal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Collects the log messages of this thread until the guard is dropped.
pub(crate) fn logged() -> (Notes, tracing::subscriber::DefaultGuard) {
    let notes = Notes::default();
    (notes.clone(), tracing::subscriber::set_default(Log(notes)))
}

struct Log(Notes);

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.note(line.0);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.push_str(&format!(" {}={value:?}", field.name()));
    }
}
