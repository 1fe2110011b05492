//! Custom transports, which carry whole messages, and in-memory connections.

use std::{io, time::Duration};

use bytes::Bytes;
use outlive::{
    server::{Cx, Principal, Server, State, Tool},
    transport::{Sink, Source, serve},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

use crate::support::{
    gate::Gate,
    pipe::{Pipe, REVISIONS, text, with_meta},
};

struct Incoming(mpsc::Receiver<io::Result<Bytes>>);

impl Source for Incoming {
    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        self.0.recv().await.transpose()
    }
}

struct Outgoing(mpsc::Sender<Bytes>);

impl Sink for Outgoing {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        self.0.send(message).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

struct Client {
    requests: mpsc::Sender<io::Result<Bytes>>,
    answers: mpsc::Receiver<Bytes>,
    serving: JoinHandle<io::Result<()>>,
}

impl Client {
    fn connect(server: &Server) -> Self {
        let (requests, incoming) = mpsc::channel(8);
        let (outgoing, answers) = mpsc::channel(8);
        let serving = serve(
            server.endpoint(),
            Principal::named("ann"),
            Incoming(incoming),
            Outgoing(outgoing),
        );
        Self { requests, answers, serving: tokio::spawn(serving) }
    }

    async fn send(&self, message: impl Into<Bytes>) {
        self.requests.send(Ok(message.into())).await.unwrap();
    }

    async fn call(&self, id: u64, tool: &str) {
        let params = with_meta(json!({"name": tool}));
        self.send(
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
                .to_string(),
        )
        .await;
    }

    async fn read(&mut self) -> Value {
        let message = soon(self.answers.recv()).await.expect("a message");
        assert!(!message.contains(&b'\n'), "a message has no line end");
        serde_json::from_slice(&message).unwrap()
    }
}

/// Awaits a future for at most ten seconds.
async fn soon<F: Future>(future: F) -> F::Output {
    timeout(Duration::from_secs(10), future).await.expect("within ten seconds")
}

fn server(gate: &Gate) -> Server {
    let wait = async |gate: State<Gate>| {
        gate.pass().await;
        "done"
    };
    Server::builder("test", "1")
        .tool(Tool::new("who", async |who: Principal| who.to_string()))
        .tool(Tool::new("wait", wait))
        .state(gate.clone())
        .limits(|limits| limits.max_message_bytes = 1_000)
        .build()
        .unwrap()
}

// RPC-32, STDIO-15
#[tokio::test(start_paused = true)]
async fn custom_transport_carries_whole_messages() {
    let mut client = Client::connect(&server(&Gate::default()));
    client.call(1, "who").await;
    assert_eq!(text(&client.read().await["result"]), "ann");
    // A message may contain line breaks.
    let params = with_meta(json!({}));
    client
        .send(format!(
            "{{\"jsonrpc\":\"2.0\",\n\"id\":2,\n\"method\":\"tools/list\",\"params\":{params}}}"
        ))
        .await;
    assert_eq!(client.read().await["result"]["tools"][0]["name"], "who");
    client.send("nonsense").await;
    assert_eq!(client.read().await["error"]["code"], -32700);
    client.send("x".repeat(1_001)).await;
    assert_eq!(client.read().await["error"]["code"], -32600);
    let hello = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    client
        .send(
            json!({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": hello}).to_string(),
        )
        .await;
    assert_eq!(client.read().await["result"]["protocolVersion"], "2025-03-26");
    client.send(r#"[{"jsonrpc":"2.0","id":4,"method":"ping"},{"jsonrpc":"2.0","id":5,"method":"ping"}]"#).await;
    assert_eq!(client.read().await.as_array().unwrap().len(), 2, "a batch is one message");
}

#[tokio::test(start_paused = true)]
async fn ended_source_still_gets_responses_of_running_calls() {
    let gate = Gate::default();
    let mut client = Client::connect(&server(&gate));
    client.call(1, "wait").await;
    gate.arrived().await;
    let params = with_meta(json!({"notifications": {"toolsListChanged": true}}));
    client
        .send(
            json!({"jsonrpc": "2.0", "id": 2, "method": "subscriptions/listen", "params": params})
                .to_string(),
        )
        .await;
    assert_eq!(client.read().await["method"], "notifications/subscriptions/acknowledged");
    let Client { requests, mut answers, serving } = client;
    drop(requests);
    gate.open(1);
    let answer: Value = serde_json::from_slice(&soon(answers.recv()).await.unwrap()).unwrap();
    assert_eq!(answer["id"], 1);
    assert!(soon(answers.recv()).await.is_none(), "the subscription ends without a message");
    soon(serving).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn failing_source_or_sink_ends_connection_and_cancels_calls() {
    let gate = Gate::default();
    let client = Client::connect(&server(&gate));
    client.call(1, "wait").await;
    gate.arrived().await;
    client.requests.send(Err(io::Error::other("cut"))).await.unwrap();
    assert_eq!(soon(client.serving).await.unwrap().unwrap_err().to_string(), "cut");
    gate.abandoned().await;

    let Client { requests, answers, serving } = Client::connect(&server(&gate));
    drop(answers);
    requests.send(Ok("nonsense".into())).await.unwrap();
    assert_eq!(soon(serving).await.unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn in_memory_connection_closes_after_last_response() {
    let gate = Gate::default();
    let mut connection = server(&gate).connect_in_memory();
    let params = with_meta(json!({"name": "wait"}));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    connection.stream.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    gate.arrived().await;
    connection.stream.shutdown().await.unwrap();
    gate.open(1);
    let mut answer = String::new();
    soon(connection.stream.read_to_string(&mut answer)).await.unwrap();
    assert_eq!(answer.lines().count(), 1, "{answer}");
    soon(connection.closed()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn close_stream_on_pipe_has_no_effect() {
    let leave = async |cx: Cx| {
        cx.close_stream(Duration::from_millis(1));
        cx.progress(1.0, None, "");
        "still here"
    };
    let server = Server::builder("test", "1").tool(Tool::new("leave", leave)).build().unwrap();
    for version in REVISIONS {
        let mut pipe = Pipe::speaking(&server, version).await;
        let params = json!({"name": "leave", "_meta": {"progressToken": 1}});
        let id = pipe.send("tools/call", params).await;
        let messages = pipe.read_to(id).await;
        assert_eq!(messages.len(), 2, "{version}");
        assert_eq!(text(&messages[1]["result"]), "still here", "{version}");
    }
}

#[tokio::test(start_paused = true)]
async fn cloned_server_shares_state() {
    let server = server(&Gate::default());
    let clone = server.clone();
    clone.add_tool(Tool::new("new", async || "new")).unwrap();
    drop(clone);
    assert_eq!(text(&Pipe::open(&server).call("new", json!({})).await), "new");
    let pipe = Pipe::open(&server);
    drop(server);
    let mut pipe = pipe;
    assert_eq!(text(&pipe.call("new", json!({})).await), "new", "a connection keeps its server");
}
