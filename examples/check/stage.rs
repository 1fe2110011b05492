//! Where a story is told: its program as a process, and the way of our own client to it.

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

/// How the client reaches its server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wire {
    Stdio,
    Http,
}

/// Which generation of the protocol it speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

/// A program of this package, on one transport and in one era.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stage {
    pub(crate) program: &'static str,
    pub(crate) wire: Wire,
    pub(crate) era: Era,
}

/// A server that can be connected to, for as long as this is held. On a pipe every client has a
/// process of its own, which ends with it.
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
    /// Starts the program, with arguments of its own.
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

    /// Starts the program and connects to it, as somebody whom nobody asks anything.
    pub(crate) async fn connect(&self) -> Result<(Client, Server)> {
        let server = self.start(&[])?;
        Ok((server.connect(plain()).await?, server))
    }
}

/// Starts a program on a free port; where it listens.
fn listening(path: &PathBuf, arguments: &[&str]) -> Result<(String, Process)> {
    let mut command = Command::new(path);
    command.args(arguments).args(["--port", "0"]).stderr(Stdio::piped());
    let mut process = Process(command.spawn().with_context(|| {
        format!("could not start {}; run `cargo build -p outlive-examples`", path.display())
    })?);
    let stderr = process.0.stderr.take().context("no stderr")?;
    let mut talk = BufReader::new(stderr).lines().map_while(Result::ok);
    let url = talk.find_map(|line| line.strip_prefix("listening on ").map(str::to_owned));
    // The rest is read too: a program whose talk nobody reads cannot go on talking.
    thread::spawn(move || talk.for_each(drop));
    Ok((url.context("the server did not say where it listens")?, process))
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

/// A client that answers nothing.
pub(crate) fn plain() -> ClientBuilder {
    Client::builder("check", "1")
}

/// A client whose user answers forms. `user` is given a question and what it says.
pub(crate) fn answering(
    user: impl Fn(&PendingInput, &str) -> InputResponse + Send + Sync + 'static,
) -> ClientBuilder {
    let answers = InputCallbacks::new().form(move |question| {
        let answer = match &question.request {
            InputKind::Form(form) => user(&question, &form.message),
            _ => nobody_expected(&question),
        };
        async { answer }
    });
    plain().input_handler(answers)
}

/// The answer to a question that should not have been asked: the call fails with it.
pub(crate) fn nobody_expected(question: &PendingInput) -> InputResponse {
    InputResponse::Error(format!("nobody expected to be asked {:?}", question.request))
}

/// The next round of a call of 2026-07-28 that came back with questions: the same call, an answer to
/// each of them, and the state. Earlier answers are not sent again; they are in the state.
pub(crate) fn answered(
    params: &Value,
    asked: &Value,
    user: impl Fn(&str) -> Option<Value>,
) -> Result<Value> {
    let mut answers = Map::new();
    for (key, question) in asked["inputRequests"].as_object().into_iter().flatten() {
        let content = question["params"]["message"].as_str().and_then(&user);
        let content = content.with_context(|| format!("nobody expected {question}"))?;
        answers.insert(key.clone(), json!({"action": "accept", "content": content}));
    }
    let mut round = params.clone();
    round["inputResponses"] = answers.into();
    if let Some(state) = asked.get("requestState") {
        round["requestState"] = state.clone();
    }
    Ok(round)
}

/// One round of a call of 2026-07-28, as it is on the wire.
pub(crate) async fn round(client: &Client, params: &Value) -> Result<Value> {
    let result = client.request("tools/call", params).raw_result().await?;
    Ok(serde_json::from_str(result.get())?)
}

/// What is wrong with a call that must be refused: its code, and what else the refusal says.
pub(crate) fn refusal<T>(outcome: Result<T, Error>) -> Result<(i32, Value)> {
    let error = outcome.err().context("it was not refused")?;
    let refused = error.server_error().with_context(|| format!("no refusal: {error}"))?;
    let data = refused.data.as_ref().map(|data| serde_json::from_str(data.get()));
    Ok((refused.code, data.transpose()?.unwrap_or_default()))
}

/// A result as it is on the wire.
pub(crate) fn shown(result: &impl Serialize) -> Result<Value> {
    Ok(serde_json::to_value(result)?)
}

/// The names of an object's members, in alphabetical order.
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
