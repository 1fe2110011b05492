//! A client that repeats one call until it has an ending.

use std::io::{self, BufReader};
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::killer::Point;
use super::kinds::{Fate, Kind, key};
use super::shared::Shared;
use crate::console::people::{ANN, BOB};
use crate::console::visitor::text;
use crate::crash::http::Response;
use crate::crash::random::Random;
use crate::hosts::caller::{self, Caller, last, pending_task};

/// Maximum duration of one call, with all kills.
const RUN: Duration = Duration::from_secs(150);
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);
/// Time between two polls of a task.
const POLL: Duration = Duration::from_millis(150);
/// Age of a call without votes, shortly before its decision timeout of 3 s.
const EXPIRING: Range<Duration> = Duration::from_millis(2_300)..Duration::from_millis(2_600);

/// The ending of a call, as its client learned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The result of the tool.
    Result,
    /// Denied, expired, lapsed, withdrawn or cancelled: nothing ran.
    Refused,
    /// The tool failed, because its server was killed while it ran.
    Failed,
    /// No ending in time.
    Missing,
}

/// A call and its ending.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) key: String,
    pub(super) kind: Kind,
    pub(super) fate: Fate,
    pub(super) ending: Ending,
    /// The last message of a call without an ending.
    pub(super) last: String,
}

/// A client of one kind.
pub(super) struct Client<'s> {
    shared: &'s Shared<'s>,
    kind: Kind,
    random: Random,
    token: &'static str,
    caller: Option<Caller>,
    /// Start of the current call.
    called: Instant,
}

/// The next step of a client.
enum Step {
    /// Sends a method with these parameters.
    Send(&'static str, Value),
    Ended(Ending),
}

impl<'s> Client<'s> {
    pub(super) fn new(shared: &'s Shared<'s>, kind: Kind, mut random: Random) -> Self {
        let token = if random.percent(50) { ANN.token } else { BOB.token };
        Self { shared, kind, random, token, caller: None, called: Instant::now() }
    }

    /// Makes one call and follows it to its ending.
    pub(super) fn run(&mut self, number: usize) -> Call {
        let fate = Fate::draw(number / Kind::ALL.len());
        let key = key(self.kind, fate, number);
        let (mut last, mut ending) = (String::new(), Ending::Missing);
        let first = self.first(&key, fate);
        let (mut method, mut params) = ("tools/call", first.clone());
        let started = Instant::now();
        while started.elapsed() < RUN {
            let message = match self.send(&key, method, &params) {
                Ok(message) => message,
                Err(error) => {
                    last = error.to_string();
                    thread::sleep(PAUSE);
                    // A lost call is made again. A lost round or poll is repeated.
                    if method == "tools/call" && params.get("requestState").is_none() {
                        params = first.clone();
                    }
                    continue;
                }
            };
            last = message.to_string().chars().take(300).collect();
            match self.next(&message, &key, &first) {
                Step::Send(next, with) => {
                    if method == next && with == params {
                        thread::sleep(POLL);
                    }
                    (method, params) = (next, with);
                }
                Step::Ended(end) => {
                    ending = end;
                    break;
                }
            }
        }
        Call { key, kind: self.kind, fate, ending, last }
    }

    fn first(&self, key: &str, fate: Fate) -> Value {
        let arguments = json!({"key": key, "value": format!("value of {key}")});
        let mut call = json!({"name": self.kind.tool(fate), "arguments": arguments});
        if self.kind == Kind::Requested {
            call["task"] = json!({"ttl": 3_600_000});
        }
        call
    }

    fn send(&mut self, key: &str, method: &str, params: &Value) -> io::Result<Value> {
        let replica = self.random.below(self.shared.site.replicas());
        let address = self.shared.site.address(replica).map_err(io::Error::other)?;
        let caller = match self.caller.take() {
            Some(caller) => caller.at(address),
            None => self.kind.connect(address, self.token).map_err(io::Error::other)?,
        };
        let is_call = is_call(method, params);
        let message = caller.framed(method, params.clone());
        self.caller = Some(caller.clone());
        let stream = caller.open(&message)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        if is_call {
            self.called = Instant::now();
            self.announce(Point::Create, key, vec![replica]);
        } else if Fate::of_key(key) == Some(Fate::Expire)
            && EXPIRING.contains(&self.called.elapsed())
        {
            self.announce(Point::Expire, key, self.shared.replicas());
        }
        let response = Response::read(BufReader::new(stream));
        if is_call && response.is_err() {
            self.shared.killer.lose();
        }
        let mut response = response?;
        if response.status == 404 {
            // The session is unknown.
            self.caller = None;
            return Err(io::Error::other("no session"));
        }
        let message = last(&mut response)?;
        if is_undecided(&message) {
            self.announce(Point::Pending, key, vec![replica]);
        }
        Ok(message)
    }

    fn announce(&mut self, point: Point, key: &str, victims: Vec<usize>) {
        self.shared.killer.announce(&[point], key, victims, self.random.next());
    }

    /// Returns the step after a message.
    fn next(&self, message: &Value, key: &str, first: &Value) -> Step {
        let result = &message["result"];
        if message.get("error").is_some() {
            // The server was busy, or the session or round was lost with a server.
            return Step::Send("tools/call", first.clone());
        }
        let task = result["taskId"].as_str().or_else(|| result["task"]["taskId"].as_str());
        if let Some(task) = task {
            return after_task(result, task);
        }
        if let Some(state) = result.get("requestState") {
            let mut round = first.clone();
            round["requestState"] = state.clone();
            return Step::Send("tools/call", round);
        }
        let state = text(&result["_meta"]["dev.outlive/approval"]["state"]);
        match (state, pending_task(message)) {
            ("pending", None) => return Step::Send("tools/call", first.clone()),
            (_, Some(task)) => {
                let arguments = json!({"task": task});
                let call = json!({"name": "task_result", "arguments": arguments});
                return Step::Send("tools/call", call);
            }
            ("denied" | "expired" | "lapsed" | "withdrawn", None) => {
                return Step::Ended(Ending::Refused);
            }
            _ => {}
        }
        let said = caller::text(message);
        match (said.contains(&format!("done {key}")), result["isError"] == true) {
            (true, _) => Step::Ended(Ending::Result),
            (false, true) if said.contains("cancelled") => Step::Ended(Ending::Refused),
            (false, true) => Step::Ended(Ending::Failed),
            (false, false) => Step::Send("tools/call", first.clone()),
        }
    }
}

/// Whether a request is a call of the tool, and neither a round nor a poll.
fn is_call(method: &str, params: &Value) -> bool {
    let is_round = params.get("requestState").is_some();
    method == "tools/call" && !is_round && params["name"] != "task_result"
}

/// Whether a message tells the client that its call waits: a task, a round or a pending result.
fn is_undecided(message: &Value) -> bool {
    let result = &message["result"];
    result["_meta"]["dev.outlive/approval"]["state"] == "pending"
        || result["status"] == "working"
        || result.get("requestState").is_some()
}

/// Returns the step after the state of a task: the status is the ending, or the client polls.
fn after_task(result: &Value, task: &str) -> Step {
    let status = result["status"].as_str().or_else(|| result["task"]["status"].as_str());
    let is_error = result["result"]["isError"] == true;
    match status {
        Some("completed") if is_error => Step::Ended(ending_of(&result["result"])),
        Some("completed") => Step::Ended(Ending::Result),
        Some("cancelled") => Step::Ended(Ending::Refused),
        // In 2025-11-25 the status of a denied call is `failed`, and the result has the reason.
        Some("failed") => Step::Ended(ending_of(&result["result"])),
        _ => Step::Send("tasks/get", json!({"taskId": task})),
    }
}

/// The ending of a task whose result is an error. Without a result, the judge relies on the store.
fn ending_of(result: &Value) -> Ending {
    match text(&result["_meta"]["dev.outlive/approval"]["state"]) {
        "" if result.is_null() => Ending::Refused,
        "" => Ending::Failed,
        _ => Ending::Refused,
    }
}
