//! A client made of bytes: lines on a pipe, or POSTs and streams of events over a socket.
//!
//! It can be asked. Where a call waits for its user the question is a request on the call's
//! stream; where it does not, the call comes back with the question and is made again.

mod http;
mod pipe;
mod tasks;

use std::{
    env,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};

use http::{Http, Response};
use pipe::Pipe;
pub(crate) use tasks::{Begun, Ended, Place};

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

/// What says which task a message belongs to, on 2025-11-25.
const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A client and the server process it has started.
pub(crate) struct Client {
    program: String,
    wire: Wire,
    era: Era,
    next: u64,
    link: Link,
    /// Where changes are heard, if that is a stream of its own.
    events: Option<Response>,
    /// Notifications that came before somebody waited for them.
    heard: Vec<Value>,
    server: Server,
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Client {
    /// Starts a program of this package, with arguments of its own, and connects to it.
    pub(crate) fn start(program: &str, arguments: &[&str], wire: Wire, era: Era) -> Result<Self> {
        let path = env::current_exe()?.with_file_name(program);
        let mut command = Command::new(&path);
        command.args(arguments);
        match wire {
            Wire::Stdio => command
                .arg("--stdio")
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null()),
            Wire::Http => command.args(["--port", "0"]).stderr(Stdio::piped()),
        };
        let mut server = Server(command.spawn().with_context(|| {
            format!("could not start {}; run `cargo build -p outlive-examples`", path.display())
        })?);
        let link = match wire {
            Wire::Stdio => Link::Pipe(Pipe::to(&mut server.0)?),
            Wire::Http => Link::Http(Http::to(&mut server.0, era)?),
        };
        let mut client = Self {
            program: program.to_owned(),
            wire,
            era,
            next: 0,
            link,
            events: None,
            heard: Vec::new(),
            server,
        };
        if era == Era::Legacy {
            client.shake_hands()?;
        }
        Ok(client)
    }

    /// Starts another process of the same program, and connects to it alike.
    pub(crate) fn another(&self, arguments: &[&str]) -> Result<Self> {
        Self::start(&self.program, arguments, self.wire, self.era)
    }

    pub(crate) fn era(&self) -> Era {
        self.era
    }

    /// The number of the server's process.
    pub(crate) fn process(&self) -> u32 {
        self.server.0.id()
    }

    /// Calls a method; its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        let request = self.request(method, params, &json!({}));
        let result = granted(self.exchange(&request, unexpected)?)?;
        if self.era == Era::Modern {
            expect(&result["resultType"], &json!("complete"))?;
        }
        Ok(result)
    }

    /// Calls a method that will be refused; the error.
    pub(crate) fn refused(&mut self, method: &str, params: Value) -> Result<Value> {
        let request = self.request(method, params, &json!({}));
        let mut answer = self.exchange(&request, unexpected)?;
        ensure!(answer["result"].is_null(), "{method} was not refused: {answer}");
        Ok(answer["error"].take())
    }

    /// Calls a method that asks; its result. `user` takes a question's message and form, and says
    /// what a user does with it.
    pub(crate) fn call_answering(
        &mut self,
        method: &str,
        params: Value,
        mut user: impl FnMut(&Value) -> Result<Value>,
    ) -> Result<Value> {
        if self.era == Era::Legacy {
            let request = self.request(method, params, &Value::Null);
            return granted(self.exchange(&request, user)?);
        }
        let mut result = self.round(method, params.clone())?;
        while result["resultType"] == "input_required" {
            result = self.round(method, answered(&params, &result, &mut user)?)?;
        }
        expect(&result["resultType"], &json!("complete"))?;
        Ok(result)
    }

    /// Makes one round of a call of 2026-07-28 that asks; its result, or what it asks for. The
    /// next round may go to another process.
    pub(crate) fn round(&mut self, method: &str, params: Value) -> Result<Value> {
        let request = self.request(method, params, &json!({"elicitation": {}}));
        granted(self.exchange(&request, unexpected)?)
    }

    /// Starts to listen for changes. Legacy clients on a pipe hear of them without asking.
    pub(crate) fn listen(&mut self, wanted: &Value) -> Result<()> {
        match (&mut self.link, self.era) {
            (Link::Pipe(_), Era::Legacy) => Ok(()),
            (Link::Http(http), Era::Legacy) => {
                self.events = Some(http.listen()?);
                Ok(())
            }
            (_, Era::Modern) => {
                let wanted = json!({"notifications": wanted});
                let request = self.request("subscriptions/listen", wanted, &json!({}));
                self.events = self.link.ask(&request)?;
                self.wait_for("notifications/subscriptions/acknowledged")
            }
        }
    }

    /// Waits until a notification has come.
    pub(crate) fn wait_for(&mut self, method: &str) -> Result<()> {
        while !self.heard.iter().any(|message| message["method"] == method) {
            let message = self.link.hear(&mut self.events).with_context(|| method.to_owned())?;
            self.heard.push(message);
        }
        self.heard.retain(|message| message["method"] != method);
        Ok(())
    }

    fn shake_hands(&mut self) -> Result<()> {
        let version = "2025-11-25";
        let hello = json!({
            "protocolVersion": version,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "check", "version": "1"},
        });
        let answer = self.call("initialize", hello)?;
        expect(&answer["protocolVersion"], &json!(version))?;
        self.link.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    }

    /// A request. Its capabilities are those of this call where the era has such.
    fn request(&mut self, method: &str, mut params: Value, capabilities: &Value) -> Value {
        self.next += 1;
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            });
        }
        json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
    }

    /// Sends a request and waits for its answer. What is asked until then is put to the user.
    fn exchange(
        &mut self,
        request: &Value,
        mut user: impl FnMut(&Value) -> Result<Value>,
    ) -> Result<Value> {
        let answer = self.exchange_or_leave(request, |question| user(question).map(Some))?;
        answer.context("every question is answered")
    }

    /// As [`Client::exchange`], unless the user leaves a question open: then nobody waits any more.
    fn exchange_or_leave(
        &mut self,
        request: &Value,
        mut user: impl FnMut(&Value) -> Result<Option<Value>>,
    ) -> Result<Option<Value>> {
        let mut stream = self.link.ask(request)?;
        loop {
            let message = self.link.hear(&mut stream)?;
            match message["method"].as_str() {
                None if message["id"] == request["id"] => return Ok(Some(message)),
                Some("elicitation/create") => {
                    let Some(mut answer) = user(&message["params"])? else { return Ok(None) };
                    // Says which task it belongs to, if the question did.
                    if let Some(related) = message["params"]["_meta"].get(RELATED) {
                        answer["_meta"] = json!({RELATED: related});
                    }
                    let id = &message["id"];
                    self.link.tell(&json!({"jsonrpc": "2.0", "id": id, "result": answer}))?;
                }
                _ => self.heard.push(message),
            }
        }
    }
}

/// The next round of a call that came back with questions: the same call, an answer to each of
/// them, and the state. Earlier answers are not sent again; they are in the state.
pub(crate) fn answered(
    params: &Value,
    asked: &Value,
    mut user: impl FnMut(&Value) -> Result<Value>,
) -> Result<Value> {
    let mut answers = Map::new();
    for (key, question) in asked["inputRequests"].as_object().into_iter().flatten() {
        expect(&question["method"], &json!("elicitation/create"))?;
        answers.insert(key.clone(), user(&question["params"])?);
    }
    let mut round = params.clone();
    round["inputResponses"] = answers.into();
    if let Some(state) = asked.get("requestState") {
        round["requestState"] = state.clone();
    }
    Ok(round)
}

/// The names of an object's members, in alphabetical order.
pub(crate) fn names(object: &Value) -> Value {
    let mut names: Vec<&String> = object.as_object().into_iter().flatten().map(|it| it.0).collect();
    names.sort();
    json!(names)
}

/// Fails with both values unless they are equal.
pub(crate) fn expect(actual: &Value, expected: &Value) -> Result<()> {
    ensure!(actual == expected, "expected {expected}, got {actual}");
    Ok(())
}

/// The result in an answer.
fn granted(mut answer: Value) -> Result<Value> {
    ensure!(answer["error"].is_null(), "the call was refused: {}", answer["error"]);
    Ok(answer["result"].take())
}

/// Answers nothing, for calls that do not ask.
fn unexpected(question: &Value) -> Result<Value> {
    bail!("nobody expected to be asked {question}")
}

enum Link {
    Pipe(Pipe),
    Http(Http),
}

impl Link {
    /// Sends a request. Over HTTP the answer has a stream of its own.
    fn ask(&mut self, request: &Value) -> Result<Option<Response>> {
        match self {
            Self::Pipe(pipe) => pipe.say(request).map(|()| None),
            Self::Http(http) => http.post(request).map(Some),
        }
    }

    /// Waits for the next message.
    fn hear(&mut self, stream: &mut Option<Response>) -> Result<Value> {
        match (self, stream) {
            (Self::Pipe(pipe), _) => pipe.hear(),
            (Self::Http(_), Some(stream)) => stream.message(),
            (Self::Http(_), None) => bail!("nobody listens"),
        }
    }

    /// Sends what is not answered.
    fn tell(&mut self, message: &Value) -> Result<()> {
        match self {
            Self::Pipe(pipe) => pipe.say(message),
            Self::Http(http) => http.tell(message),
        }
    }
}
