//! Tools that emit segments, and a client for both transports.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use outlive::{
    Form,
    server::{
        Args, CallToolResult, ContentBlock, Durable, Error, Json, Principal, Result, Server,
        ServerBuilder, State, Task, Tool,
        http::{HttpConfig, StaticTokens},
        tasks::{ResponseMode, TaskConfig, TaskPolicy},
    },
    store::{MemoryStore, Store},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::support::{
    gate::Gate,
    http::{HttpFixture, Session, Stream},
    pipe::Pipe,
};

pub(super) const VERSION: &str = "2025-11-25";
pub(super) const RELATED: &str = "io.modelcontextprotocol/related-task";
pub(super) const FALLBACK: &str = "io.modelcontextprotocol/fallback-mode";
const ANNA: &str = "annas-token-0123456789";
const BERT: &str = "berts-token-0123456789";

/// Upper limit of every wait. Only a failing test waits this long.
const GUARD: Duration = Duration::from_secs(20);

/// The emits and waits of a tool.
#[derive(Deserialize, JsonSchema)]
struct Script {
    /// Number of segments before each gate. After the last gate the tool ends.
    batches: Vec<usize>,
    /// The kind of end: `empty`, `fail`, `refuse`, `panic`. Any other text is the result.
    end: String,
}

impl Script {
    fn end(self) -> Result<CallToolResult> {
        match self.end.as_str() {
            "empty" => Ok(CallToolResult::new([])),
            "fail" => Err(Error::new("out of paper")),
            "refuse" => Err(Error::with_code(77, "not here")),
            "panic" => panic!("on purpose"),
            text => Ok(CallToolResult::text(text)),
        }
    }
}

/// Emits `1`, `2` and so on, each batch at once.
async fn script(cx: Durable, gate: State<Gate>, script: Args<Script>) -> Result<CallToolResult> {
    let Args(script) = script;
    let mut number = 0;
    for batch in &script.batches {
        for _ in 0..*batch {
            number += 1;
            cx.emit(number.to_string()).await?;
        }
        gate.pass().await;
    }
    script.end()
}

/// The same in a handler that is not replayed.
async fn once(cx: Task, gate: State<Gate>, script: Args<Script>) -> Result<CallToolResult> {
    let Args(script) = script;
    let mut number = 0;
    for batch in &script.batches {
        for _ in 0..*batch {
            number += 1;
            cx.emit(number.to_string()).await?;
        }
        gate.pass().await;
    }
    script.end()
}

/// Waits at the gate once and emits nothing.
async fn plain(gate: State<Gate>) -> &'static str {
    gate.pass().await;
    "all at once"
}

async fn instant() -> &'static str {
    "here it is"
}

async fn broken() -> Result<String> {
    Err(Error::new("out of paper"))
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    total: u32,
}

async fn structured(cx: Durable) -> Result<Json<Sum>> {
    cx.emit("1").await?;
    Ok(Json(Sum { total: 1 }))
}

#[derive(Deserialize, JsonSchema, Form)]
struct Approval {
    yes: bool,
}

/// Emits, elicits, and emits again.
async fn asks(cx: Durable) -> Result<CallToolResult> {
    cx.emit("1").await?;
    let approval: Approval = cx.elicit("sure", "Really?").await?;
    cx.emit(format!("said {}", approval.yes)).await?;
    Ok(CallToolResult::new([]))
}

/// Emits without end and without pause.
async fn endless(cx: Durable) -> Result<String> {
    loop {
        cx.emit("again").await?;
        tokio::task::yield_now().await;
    }
}

/// Emits without end, with pauses.
async fn ticks(cx: Durable) -> Result<String> {
    loop {
        cx.emit("tick").await?;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Emits more than the buffers of a connection hold.
async fn bulk(cx: Durable, gate: State<Gate>) -> Result<CallToolResult> {
    let block = "x".repeat(60 << 10);
    for _ in 0..200 {
        cx.emit(block.clone()).await?;
    }
    gate.pass().await;
    Ok(CallToolResult::new([]))
}

/// Emits one segment of each content type.
async fn kinds(cx: Durable) -> Result<CallToolResult> {
    cx.emit(ContentBlock::text("a")).await?;
    cx.emit(ContentBlock::image_base64("AAAA", "image/png")).await?;
    cx.emit(ContentBlock::audio_base64("AAAA", "audio/wav")).await?;
    Ok(CallToolResult::new([]))
}

pub(crate) fn tools(server: ServerBuilder) -> ServerBuilder {
    let auto = TaskPolicy::Auto { after: Duration::from_secs(60) };
    server
        .tool(Tool::new("script", script).task(auto).streams_content())
        .tool(Tool::new("once", once).task(auto).streams_content())
        .tool(Tool::new("always", script).task(TaskPolicy::Always).streams_content())
        .tool(Tool::new("plain", plain).task(auto))
        .tool(Tool::new("instant", instant).task(TaskPolicy::Always))
        .tool(Tool::new("broken", broken).task(auto).streams_content())
        .tool(Tool::new("structured", structured).task(auto).streams_content())
        .tool(Tool::new("asks", asks).task(auto).streams_content())
        .tool(Tool::new("endless", endless).task(auto).streams_content())
        .tool(Tool::new("ticks", ticks).task(auto).streams_content())
        .tool(Tool::new("bulk", bulk).task(auto).streams_content())
        .tool(Tool::new("kinds", kinds).task(auto).streams_content())
}

/// All response modes.
pub(crate) const ALL: [ResponseMode; 2] = [ResponseMode::Immediate, ResponseMode::Streaming];

/// A change of the task configuration for a test.
pub(crate) type Change = fn(TaskConfig) -> TaskConfig;

/// A server, and the gate of its tools.
pub(crate) struct World {
    pub(crate) gate: Gate,
    pub(crate) server: Server,
}

impl World {
    pub(super) fn new(change: Change) -> Self {
        Self::over(Arc::new(MemoryStore::new()), change)
    }

    pub(crate) fn over(store: Arc<dyn Store>, change: Change) -> Self {
        let gate = Gate::default();
        let config = TaskConfig::new(store).engine(|engine| {
            engine.poll_interval = Duration::from_millis(20);
            // A sweep must not expire tasks: readers notice the end of the TTL themselves.
            engine.sweep_interval = Duration::from_secs(3600);
        });
        let server = Server::builder("streams", "1").state(gate.clone()).tasks(change(config));
        Self { gate, server: tools(server).build().unwrap() }
    }

    /// A client that declares all modes.
    pub(super) async fn client(&self, wire: Wire) -> Client {
        self.client_with(wire, declared()).await
    }

    pub(super) async fn client_with(&self, wire: Wire, capabilities: Value) -> Client {
        match wire {
            Wire::Pipe => {
                let mut pipe = Pipe::open(&self.server);
                let hello = pipe.legacy_with(VERSION, capabilities).await;
                Client { hello, end: End::Pipe(Box::new(pipe), VecDeque::new()) }
            }
            Wire::Http => {
                let tokens = StaticTokens::new().with("anna", ANNA).with("bert", BERT);
                let config = HttpConfig::new().authenticator(tokens);
                let server = HttpFixture::of(self.server.clone(), config).await;
                Client::over_http(Arc::new(server), capabilities, ANNA).await
            }
        }
    }
}

/// The capabilities of a client with all modes and elicitation.
pub(super) fn declared() -> Value {
    let modes = ["task", "immediate", "streaming"];
    json!({"elicitation": {}, "tasks": {"responses": {"modes": modes}}})
}

/// The transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wire {
    Pipe,
    Http,
}

impl Wire {
    pub(super) const BOTH: [Self; 2] = [Self::Pipe, Self::Http];
}

/// A client of 2025-11-25.
pub(super) struct Client {
    /// The `initialize` result.
    pub(super) hello: Value,
    end: End,
}

enum End {
    Pipe(Box<Pipe>, VecDeque<Value>),
    Http(Arc<HttpFixture>, Box<Session>),
}

/// A call and its stream of responses.
pub(super) struct Flow {
    pub(super) id: Value,
    stream: Option<Stream>,
    whole: Option<Value>,
}

impl Client {
    async fn over_http(server: Arc<HttpFixture>, capabilities: Value, token: &str) -> Self {
        let hello = crate::support::http::Request::initialize(VERSION)
            .param("capabilities", capabilities)
            .bearer(token);
        let answer = server.send(&hello).await.result();
        let session = Session::open(server.address(), hello, Some(token)).await;
        Self { hello: answer, end: End::Http(server, Box::new(session)) }
    }

    /// A client of another principal on the same server.
    pub(super) async fn stranger(&self, world: &World) -> Self {
        match &self.end {
            End::Pipe(..) => {
                let mut pipe = Pipe::open_as(&world.server, Principal::named("bert"));
                let hello = pipe.legacy_with(VERSION, declared()).await;
                Self { hello, end: End::Pipe(Box::new(pipe), VecDeque::new()) }
            }
            End::Http(server, _) => Self::over_http(Arc::clone(server), declared(), BERT).await,
        }
    }

    /// The same principal on another connection, in another session.
    pub(super) async fn again(&self, world: &World) -> Self {
        match &self.end {
            End::Pipe(..) => world.client(Wire::Pipe).await,
            End::Http(server, _) => Self::over_http(Arc::clone(server), declared(), ANNA).await,
        }
    }

    /// Calls a tool with these response modes.
    pub(super) async fn call(&mut self, tool: &str, arguments: Value, modes: &[&str]) -> Flow {
        self.call_with(tool, arguments, json!({"ttl": 60_000, "responseModes": modes})).await
    }

    /// Calls a tool with these task parameters.
    pub(super) async fn call_with(&mut self, tool: &str, arguments: Value, task: Value) -> Flow {
        let params = json!({"name": tool, "arguments": arguments, "task": task});
        match &mut self.end {
            End::Pipe(pipe, _) => {
                let id = pipe.send("tools/call", params).await.into();
                Flow { id, stream: None, whole: None }
            }
            End::Http(server, session) => {
                let request = session.request("tools/call").params(params);
                let id = request.message_id();
                let connection = server.connect().await;
                match connection.send_or_open(&request).await {
                    Ok(stream) => Flow { id, stream: Some(stream), whole: None },
                    Err(response) => Flow { id, stream: None, whole: Some(response.json()) },
                }
            }
        }
    }

    /// Returns the next response to a call and sets other messages aside.
    pub(super) async fn next(&mut self, flow: &mut Flow) -> Value {
        loop {
            let message = self.any(flow).await;
            if message["id"] == flow.id && message.get("method").is_none() {
                return message;
            }
            // The response may belong to another call.
            if let (End::Pipe(_, aside), None) = (&mut self.end, message.get("method")) {
                aside.push_back(message);
            }
        }
    }

    /// Returns the result of the next response to a call.
    pub(super) async fn part(&mut self, flow: &mut Flow) -> Value {
        let message = self.next(flow).await;
        assert!(message.get("result").is_some(), "a result was expected: {message}");
        message["result"].clone()
    }

    /// Returns the next message on the stream of a call. On a pipe, any message that is not set
    /// aside.
    pub(super) async fn any(&mut self, flow: &mut Flow) -> Value {
        let next = async {
            match &mut self.end {
                End::Pipe(pipe, aside) => {
                    let is_its = |message: &Value| message["id"] == flow.id;
                    match aside.iter().position(is_its).and_then(|at| aside.remove(at)) {
                        Some(message) => message,
                        None => pipe.read().await,
                    }
                }
                End::Http(..) => match (&mut flow.stream, flow.whole.take()) {
                    (Some(stream), _) => stream.message().await,
                    (None, Some(whole)) => whole,
                    (None, None) => panic!("the only response was already read"),
                },
            }
        };
        tokio::time::timeout(GUARD, next).await.expect("a message within the time limit")
    }

    /// Returns all results of a call, up to the complete one.
    pub(super) async fn parts(&mut self, flow: &mut Flow) -> Vec<Value> {
        let mut parts = Vec::new();
        loop {
            let part = self.part(flow).await;
            let is_last = part["isComplete"] == true;
            parts.push(part);
            if is_last {
                return parts;
            }
        }
    }

    /// Asserts that a call gets no further response.
    pub(super) async fn over(&mut self, flow: Flow) {
        match &mut self.end {
            End::Pipe(..) => {
                // Every earlier message arrives before the response to this ping.
                let pong = self.ask("ping", json!({})).await;
                assert_eq!(pong, json!({}));
                let End::Pipe(_, aside) = &self.end else { return };
                let late = aside.iter().find(|message| message["id"] == flow.id);
                assert!(late.is_none(), "a response after the last: {late:?}");
            }
            End::Http(..) => match flow.stream {
                Some(stream) => drop(stream.ended().await),
                None => assert!(flow.whole.is_none(), "the response was read"),
            },
        }
    }

    /// Leaves a call without reading further.
    pub(super) fn leave(&mut self, flow: Flow) {
        drop(flow);
    }

    /// Returns the response to a request and sets other messages aside.
    pub(super) async fn answer(&mut self, method: &str, params: Value) -> Value {
        match &mut self.end {
            End::Pipe(pipe, aside) => {
                let id = pipe.send(method, params).await;
                loop {
                    let message =
                        tokio::time::timeout(GUARD, pipe.read()).await.expect("a response");
                    if message["id"] == id && message.get("method").is_none() {
                        return message;
                    }
                    aside.push_back(message);
                }
            }
            End::Http(server, session) => {
                let response = server.send(session.request(method).params(params)).await;
                match response.is_stream() {
                    false => response.json(),
                    true => response.messages().pop().expect("a message"),
                }
            }
        }
    }

    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params).await;
        assert!(answer.get("result").is_some(), "a result was expected: {answer}");
        answer["result"].clone()
    }

    pub(super) async fn refused(&mut self, method: &str, params: Value) -> i64 {
        let answer = self.answer(method, params).await;
        answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("an error: {answer}"))
    }

    /// Responds to an input request of the server.
    pub(super) async fn reply(&mut self, asked: &Value, result: Value) {
        match &mut self.end {
            End::Pipe(pipe, _) => pipe.reply(asked, result).await,
            End::Http(server, session) => {
                assert_eq!(server.send(session.reply(asked, result)).await.status(), 202);
            }
        }
    }

    pub(super) async fn status(&mut self, id: &str) -> String {
        let task = self.ask("tasks/get", json!({"taskId": id})).await;
        task["status"].as_str().unwrap().to_owned()
    }

    /// Polls until a task has this status.
    pub(super) async fn until(&mut self, id: &str, status: &str) {
        let reached = async {
            while self.status(id).await != status {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(GUARD, reached).await.expect("the status is reached");
    }

    /// Returns the segments after a number.
    pub(super) async fn after(&mut self, id: &str, last: u64) -> Value {
        self.ask("tasks/result", json!({"taskId": id, "lastSeqNr": last})).await
    }

    /// Returns the HTTP server and the session of the client. `None` on a pipe.
    pub(super) fn http(&self) -> Option<(&HttpFixture, &Session)> {
        match &self.end {
            End::Http(server, session) => Some((server, session)),
            End::Pipe(..) => None,
        }
    }
}

/// Returns the task ID of a response.
#[track_caller]
pub(super) fn task_of(part: &Value) -> String {
    let related = &part["_meta"][RELATED]["taskId"];
    related.as_str().unwrap_or_else(|| panic!("no task is named: {part}")).to_owned()
}

/// Returns numbers and texts of the segments in a response.
#[track_caller]
pub(super) fn blocks(part: &Value) -> Vec<(u64, String)> {
    let blocks = part["partial-content"].as_array();
    let blocks = blocks.unwrap_or_else(|| panic!("no segments: {part}"));
    let block = |block: &Value| {
        (block["seqNr"].as_u64().unwrap(), block["text"].as_str().unwrap_or("-").to_owned())
    };
    blocks.iter().map(block).collect()
}

/// Returns the numbers of the segments in several responses.
pub(super) fn numbers(parts: &[Value]) -> Vec<u64> {
    let with_blocks = parts.iter().filter(|part| part.get("partial-content").is_some());
    with_blocks.flat_map(blocks).map(|(number, _)| number).collect()
}

/// Merges content as a client does: sorted by number, without the numbers.
pub(super) fn merged(parts: &[Value]) -> Vec<Value> {
    let mut blocks: Vec<Value> = parts
        .iter()
        .flat_map(|part| part["partial-content"].as_array().cloned().unwrap_or_default())
        .collect();
    blocks.sort_by_key(|block| block["seqNr"].as_u64());
    blocks.dedup();
    for block in &mut blocks {
        block.as_object_mut().unwrap().remove("seqNr");
    }
    blocks
}

pub(super) fn script_of(batches: &[usize], end: &str) -> Value {
    json!({"batches": batches, "end": end})
}
