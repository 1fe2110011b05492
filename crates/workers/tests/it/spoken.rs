//! A process of a tool worker whose lines a test writes and reads.

use std::{path::Path, time::Duration};

use rustix::process::Signal;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};

use crate::support::signal;

/// Upper limit of every wait. Only a failing test waits this long.
const GUARD: Duration = Duration::from_secs(30);

/// The script that passes lines on to a socket.
pub(crate) const RELAY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/relay.py");

/// A process that has read its `welcome`.
pub(crate) struct SpokenProcess {
    pub(crate) welcome: Value,
    nonce: String,
    pid: u64,
    input: BufReader<OwnedReadHalf>,
    output: OwnedWriteHalf,
    /// Segments that the server has accepted, of the last call.
    pub(crate) stored_segments: u64,
    /// Lines that were read before they were expected.
    early: Vec<Value>,
}

impl SpokenProcess {
    /// Waits for the next process, and reads its `welcome`.
    pub(crate) async fn accept(listener: &UnixListener) -> Self {
        let accepted = timeout(GUARD, listener.accept()).await;
        let (stream, _): (UnixStream, _) = accepted.expect("a process starts in time").unwrap();
        let pid = stream.peer_cred().unwrap().pid().unwrap();
        let (input, output) = stream.into_split();
        let mut process = Self {
            welcome: Value::Null,
            nonce: String::new(),
            pid: u64::try_from(pid).unwrap(),
            input: BufReader::new(input),
            output,
            stored_segments: 0,
            early: Vec::new(),
        };
        process.welcome = process.line().await.expect("the server speaks first");
        let nonce = process.welcome["welcome"]["nonce"].as_str();
        process.nonce = nonce.expect("`welcome` has a nonce").to_owned();
        process
    }

    /// Writes a message with the nonce.
    pub(crate) async fn write(&mut self, message: &Value) {
        let mut line = message.clone();
        line["nonce"] = json!(self.nonce);
        self.write_raw(&line.to_string()).await;
    }

    /// Writes a line without the nonce.
    pub(crate) async fn write_raw(&mut self, line: &str) {
        self.output.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// Returns the next message that is not about segments; `None` after the end. Responds to pings.
    pub(crate) async fn read(&mut self) -> Option<Value> {
        if !self.early.is_empty() {
            return Some(self.early.remove(0));
        }
        loop {
            let message = self.line().await?;
            if let Some(number) = message.get("ping") {
                self.write(&json!({"pong": number})).await;
            } else if let Some(count) = message["stored_segments"].as_u64() {
                self.stored_segments = count;
            } else {
                return Some(message);
            }
        }
    }

    /// Waits for a ping, and responds to it.
    pub(crate) async fn ping(&mut self) {
        loop {
            let message = self.line().await.expect("a ping arrives");
            if let Some(number) = message.get("ping") {
                return self.write(&json!({"pong": number})).await;
            }
            match message["stored_segments"].as_u64() {
                Some(count) => self.stored_segments = count,
                None => self.early.push(message),
            }
        }
    }

    /// Waits until the server has accepted this number of segments.
    pub(crate) async fn until_stored(&mut self, count: u64) {
        while self.stored_segments < count {
            let message = self.line().await.expect("segments are accepted");
            if let Some(number) = message.get("ping") {
                self.write(&json!({"pong": number})).await;
            } else if let Some(count) = message["stored_segments"].as_u64() {
                self.stored_segments = count;
            } else {
                self.early.push(message);
            }
        }
    }

    /// Returns lines that were read too early.
    pub(crate) fn put_back(&mut self, lines: Vec<Value>) {
        self.early.splice(0..0, lines);
    }

    /// Kills the process with `kill -9`.
    pub(crate) fn kill(self) {
        signal(self.pid, Signal::KILL);
    }

    /// Reads until the server ends standard input, then lets the process exit.
    pub(crate) async fn end(mut self) {
        while self.read().await.is_some() {}
    }

    async fn line(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = timeout(GUARD, self.input.read_line(&mut line)).await;
        let read = read.expect("a line arrives in time").unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }
}

/// Returns the entries of `tools.json`, which the processes of the conversations declare.
pub(crate) fn declared(protocol: &Path) -> Vec<Map<String, Value>> {
    let text = std::fs::read_to_string(protocol.join("tools.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}
