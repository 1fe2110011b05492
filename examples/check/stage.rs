//! Environment of a check: the example as a process, and client connections to it.

use std::{
    env,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
};

use anyhow::{Context, Result, ensure};
use outlive::{
    client::{
        Client, ClientBuilder, Error, Target,
        input::{InputCallbacks, InputKind, InputResponse, PendingInput},
        transport::{ChildProcess, Stderr},
    },
    wire::Version,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Transport between client and server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire {
    Stdio,
    Http,
}

/// Era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

/// An example, on one transport and in one era.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub(crate) program: &'static str,
    pub(crate) wire: Wire,
    pub(crate) era: Era,
}

/// A running server. On stdio every client starts its own process, which ends with the client.
pub(crate) struct Server {
    target: Target,
    era: Era,
    _process: Option<Process>,
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stage {
    /// Starts the example with additional arguments.
    pub(crate) fn start(&self, arguments: &[&str]) -> Result<Server> {
        let path = env::current_exe()?.with_file_name(self.program);
        let (target, process) = match self.wire {
            Wire::Stdio => {
                let program =
                    ChildProcess::new(&path).args(arguments.iter().copied()).arg("--stdio");
                (program.stderr(Stderr::Ignore).into(), None)
            }
            Wire::Http => {
                let (url, process) = listening(&path, arguments)?;
                (url.into(), Some(process))
            }
        };
        Ok(Server { target, era: self.era, _process: process })
    }

    /// Starts the example and connects a client without an input handler.
    pub(crate) async fn connect(&self) -> Result<(Client, Server)> {
        let server = self.start(&[])?;
        Ok((server.connect(plain()).await?, server))
    }
}

/// Starts a program on a free port and returns its URL.
fn listening(path: &PathBuf, arguments: &[&str]) -> Result<(String, Process)> {
    let mut command = Command::new(path);
    command.args(arguments).args(["--port", "0"]).stderr(Stdio::piped());
    let mut process = Process(command.spawn().with_context(|| {
        format!("could not start {}; run `cargo build -p outlive-examples`", path.display())
    })?);
    let stderr = process.0.stderr.take().context("the process has no stderr")?;
    let mut talk = BufReader::new(stderr).lines().map_while(Result::ok);
    let url = talk.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
    // Reads the remaining output too, because a full pipe would block the program.
    thread::spawn(move || talk.for_each(drop));
    Ok((url.context("the server did not print its URL")?, process))
}

impl Server {
    pub(crate) async fn connect(&self, client: ClientBuilder) -> Result<Client> {
        let version = match self.era {
            Era::Modern => Version::V2026_07_28,
            Era::Legacy => Version::V2025_11_25,
        };
        Ok(client.protocol_version(version).connect(self.target.clone()).await?)
    }
}

/// Returns a builder of a client without an input handler.
pub(crate) fn plain() -> ClientBuilder {
    Client::builder("check", "1")
}

/// Returns a builder of a client whose `user` responds to forms. `user` receives the request and
/// its message.
pub(crate) fn answering(
    user: impl Fn(&PendingInput, &str) -> InputResponse + Send + Sync + 'static,
) -> ClientBuilder {
    let answers = InputCallbacks::new().form(move |question| {
        let answer = match &question.request {
            InputKind::Form(form) => user(&question, &form.message),
            _ => unexpected_request(&question),
        };
        async { answer }
    });
    plain().input_handler(answers)
}

/// Returns a response to an unexpected input request. The call fails with it.
pub(crate) fn unexpected_request(question: &PendingInput) -> InputResponse {
    InputResponse::Error(format!("unexpected input request {:?}", question.request))
}

/// Returns the next round of a 2026-07-28 call: the same call, the input responses and the request
/// state. The request state contains the earlier responses.
pub(crate) fn answered(
    params: &Value,
    asked: &Value,
    user: impl Fn(&str) -> Option<Value>,
) -> Result<Value> {
    let mut answers = Map::new();
    for (key, request) in asked["inputRequests"].as_object().into_iter().flatten() {
        let content = request["params"]["message"].as_str().and_then(&user);
        let content = content.with_context(|| format!("unexpected input request {request}"))?;
        answers.insert(key.clone(), json!({"action": "accept", "content": content}));
    }
    let mut round = params.clone();
    round["inputResponses"] = answers.into();
    if let Some(state) = asked.get("requestState") {
        round["requestState"] = state.clone();
    }
    Ok(round)
}

/// Sends one round of a 2026-07-28 call and returns the raw result.
pub(crate) async fn round(client: &Client, params: &Value) -> Result<Value> {
    let result = client.request("tools/call", params).raw_result().await?;
    Ok(serde_json::from_str(result.get())?)
}

/// Returns code and data of the server error of a call that must fail.
pub(crate) fn refusal<T>(outcome: Result<T, Error>) -> Result<(i32, Value)> {
    let error = outcome.err().context("the call did not fail")?;
    let refused = error.server_error().with_context(|| format!("not a server error: {error}"))?;
    let data = refused.data.as_ref().map(|data| serde_json::from_str(data.get()));
    Ok((refused.code, data.transpose()?.unwrap_or_default()))
}

/// Returns a result as JSON.
pub(crate) fn shown(result: &impl Serialize) -> Result<Value> {
    Ok(serde_json::to_value(result)?)
}

/// Returns the member names of an object, sorted.
pub(crate) fn names(object: &Value) -> Value {
    let mut names: Vec<&String> = object.as_object().into_iter().flatten().map(|it| it.0).collect();
    names.sort();
    json!(names)
}

/// Fails with both values unless they are equal.
pub(crate) fn expect(actual: impl Into<Value>, expected: impl Into<Value>) -> Result<()> {
    let (actual, expected) = (actual.into(), expected.into());
    ensure!(actual == expected, "expected {expected}, got {actual}");
    Ok(())
}
