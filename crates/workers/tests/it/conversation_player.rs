//! Plays a recorded conversation: it causes the lines of the server and compares them.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};
use tokio::{net::UnixListener, task::JoinSet};

use crate::{
    conversations::{Code, filled, protocol, speak},
    spoken::{SpokenProcess, declared},
    support::{RawClient, Served, text_of},
};

/// Members of a start that depend on the client or on the store.
const VARIABLE: [&str; 4] = ["principal", "idempotency_key", "future", "more"];

/// A call of the client.
struct Call {
    tool: String,
    arguments: Value,
    /// The task, or the open request of an inline call.
    task: Option<String>,
    request: u64,
    /// Whether another run continues the call.
    is_dropped: bool,
    responded: HashSet<String>,
}

/// The server, its client and its processes.
pub(crate) struct Player {
    name: String,
    listener: UnixListener,
    served: Served,
    client: RawClient,
    process: Option<SpokenProcess>,
    replaced: Vec<SpokenProcess>,
    /// The server's number and the call, by the number of the conversation.
    runs: HashMap<u64, (u64, usize)>,
    calls: Vec<Call>,
    /// The last token of an external event.
    token: String,
    /// The conversation, and the index of its current line.
    lines: Vec<Value>,
    at: usize,
}

impl Player {
    pub(crate) fn new(
        name: String,
        lines: Vec<Value>,
        listener: UnixListener,
        served: Served,
        process: SpokenProcess,
    ) -> Self {
        Self {
            client: served.client(),
            name,
            listener,
            served,
            process: Some(process),
            replaced: Vec::new(),
            runs: HashMap::new(),
            calls: Vec::new(),
            token: String::new(),
            lines,
            at: 0,
        }
    }

    /// Plays all lines after the header.
    pub(crate) async fn play(mut self) {
        self.check_welcome(&self.lines[0]["S"].clone());
        for at in 1..self.lines.len() {
            self.at = at;
            self.line(&self.lines[at].clone()).await;
        }
        self.finish().await;
    }

    async fn line(&mut self, line: &Value) {
        if let Some(message) = line.get("S") {
            self.expect_server(message).await;
        } else if let Some(message) = line.get("W") {
            self.play_worker(message).await;
        } else if let Some(lists) = line["any"].as_array() {
            let longest = lists.iter().map(|list| list.as_array().unwrap().len()).max().unwrap();
            for index in 0..longest {
                for message in lists.iter().filter_map(|list| list[index].get("W")) {
                    self.play_worker(message).await;
                }
            }
        } else if let Some(text) = line["output"].as_str() {
            self.process().write_raw(text).await;
        } else if line.get("kill").is_some() {
            self.process.take().unwrap().kill();
            self.calls.iter_mut().for_each(|call| call.is_dropped = true);
        } else if line.get("exit").is_some() && self.name.starts_with("drain") {
            // The server does not end the input of a process that drains.
            self.process = None;
        }
    }

    fn process(&mut self) -> &mut SpokenProcess {
        self.process.as_mut().expect("a process runs")
    }

    fn check_welcome(&mut self, expected: &Value) {
        let mut actual = self.process().welcome.clone();
        let server = actual["welcome"]["server"].as_str().unwrap_or_default();
        assert!(server.starts_with("outlive "), "{actual}");
        for member in ["server", "nonce"] {
            actual["welcome"][member] = expected["welcome"][member].clone();
        }
        assert_eq!(actual, *expected, "{}", self.name);
    }

    /// Writes a line of the tool worker with the server's number. The client checks a last line.
    async fn play_worker(&mut self, message: &Value) {
        let mut line = filled(message);
        // They are sent with the ping, and with the start of the process.
        if line.get("pong").is_some() || line.get("hello").is_some() {
            return;
        }
        let member = if line.get("cleanup").is_some() { "cleanup" } else { "call" };
        let (number, call) = self.runs[&line[member].as_u64().unwrap()];
        line[member] = json!(number);
        if self.name == "input_timed_out" && line.get("input").is_some() {
            line["timeout_ms"] = json!(200);
        }
        // The test has no user with one of these names.
        if let Some(members) = line.as_object_mut() {
            members.remove("audience");
        }
        if line.get("value") == Some(&json!("oe1.abc")) {
            line["value"] = json!(self.token);
        }
        if self.name == "rejected_step" && line.get("done").is_some() {
            line["value"] = json!("x".repeat((4 << 20) - (7 << 10)));
        }
        self.process().write(&line).await;
        if line.get("dropped").is_none() {
            return self.check_outcome(call, &line).await;
        }
        if self.name == "drop_moved" {
            self.process = self.replaced.pop();
        }
    }

    /// Checks that the client gets the outcome of a last line.
    async fn check_outcome(&mut self, call: usize, line: &Value) {
        let Call { task, request, .. } = &self.calls[call];
        if line.get("cleanup").is_some() {
            return;
        }
        if line.get("incompatible").is_some() {
            self.client.until_says(task.as_ref().unwrap(), "quarantined").await;
            return;
        }
        let is_last = ["return", "result", "error"].iter().any(|name| line.get(name).is_some());
        if !is_last || line.get("failed").is_some() {
            return;
        }
        let state = match task {
            Some(task) => self.client.ended(task).await,
            None => self.client.answer(*request).await,
        };
        if self.name == "cancel" {
            return assert_eq!(state["status"], "cancelled");
        }
        let result = &state["result"];
        let expected = line.get("return").or_else(|| line.get("error"));
        if let Some(text) = expected.and_then(Value::as_str) {
            let actual = text_of(result);
            assert!(actual.ends_with(text), "{}: `{actual}`, not `{text}`", self.name);
        }
        assert_eq!(
            result["isError"] == true,
            line.get("error").is_some(),
            "{}: {state}",
            self.name
        );
    }

    /// Causes a line of the server, and compares it.
    async fn expect_server(&mut self, expected: &Value) {
        if let Some(count) = expected["stored_segments"].as_u64() {
            self.process().until_stored(count).await;
        } else if expected.get("welcome").is_some() {
            self.process = Some(speak(&self.listener, &self.name, Code::First).await);
            self.check_welcome(expected);
        } else if expected.get("ping").is_some() {
            self.process().ping().await;
        } else if expected.get("drain").is_some() {
            let other = self.reload(Code::Other).await;
            self.replaced.push(other);
            self.expect(expected).await;
        } else if expected["more"] == true {
            // The start that follows has the whole journal.
        } else if expected.get("tool").is_some() {
            self.start(expected).await;
        } else if let Some(number) = expected["call"].as_u64() {
            // A server sends no line of a call that does not exist.
            if let Some((_, call)) = self.runs.get(&number).copied() {
                self.cause(expected, call).await;
                let expected = with_number(expected, self.runs[&number].0);
                self.expect(&expected).await;
            }
        }
    }

    /// Makes the server send a line of a run.
    async fn cause(&mut self, expected: &Value, call: usize) {
        if let Some(key) = expected["response"].as_str() {
            let key = key.to_owned();
            self.respond(call, &key, response_of(expected)).await;
        } else if expected.get("completed").is_some() {
            let value = expected["value"].as_str().unwrap();
            self.served.server.complete_external_event(&self.token, value).await.unwrap();
        } else if expected.get("cancel").is_some() {
            let task = self.calls[call].task.clone().unwrap();
            self.client.ask("tasks/cancel", json!({"taskId": task})).await;
        }
        if expected["kind"] == "timed_out" {
            self.time_out(call).await;
        }
        match expected["drop"].as_str() {
            Some("failed") => {
                let (number, _) = self.runs.values().find(|(_, it)| *it == call).unwrap();
                let line = json!({"call": number, "return": "x".repeat(4 << 20)});
                self.process().write(&line).await;
            }
            Some("moved") => {
                let next = self.reload(Code::Next).await;
                self.replaced.push(next);
            }
            _ => {}
        }
        self.calls[call].is_dropped |= expected.get("drop").is_some();
    }

    /// Waits until an input request times out. The engine parks the task until then, so the request
    /// is rejected in the next run.
    async fn time_out(&mut self, call: usize) {
        let earlier = &self.lines[..self.at];
        let find = |name: &str| {
            let line = earlier.iter().rev().find(|line| line[name].is_object());
            line.unwrap()[name].clone()
        };
        let (start, input) = (find("S"), find("W"));
        let number = self.runs[&1].0;
        self.expect(&json!({"call": number, "drop": "parked"})).await;
        self.process().write(&json!({"call": number, "dropped": true})).await;
        let number = self.expect_start(&start).await;
        self.runs.insert(1, (number, call));
        self.play_worker(&input).await;
    }

    /// Sends the response to an input request, once.
    async fn respond(&mut self, call: usize, key: &str, response: Value) {
        let call = &mut self.calls[call];
        if !call.responded.insert(key.to_owned()) {
            return;
        }
        let responses = json!({key: response});
        match &call.task {
            Some(task) => {
                // The server may still be committing the request.
                self.client.until_requested(task, key).await;
                let params = json!({"taskId": task, "inputResponses": responses});
                let answer = self.client.ask("tasks/update", params).await;
                assert!(answer.get("result").is_some(), "{}: {answer}", self.name);
            }
            None => {
                let asked = self.client.answer(call.request).await["result"].clone();
                let params = json!({
                    "name": call.tool, "arguments": call.arguments,
                    "requestState": asked["requestState"], "inputResponses": responses,
                });
                call.request = self.client.send("tools/call", params).await;
            }
        }
    }

    /// Reads a line of the server and compares it. Lines of one call may have another order.
    async fn expect(&mut self, expected: &Value) {
        let name = self.name.clone();
        let process = self.process();
        let mut others = Vec::new();
        loop {
            let actual = process.read().await.unwrap_or_else(|| panic!("{name}: no {expected}"));
            if actual.get("completion_token").is_some() && same(expected, &actual) {
                self.token = actual["value"].as_str().unwrap().to_owned();
                break;
            }
            if same(expected, &actual) {
                break;
            }
            others.extend(actual.get("drain").is_none().then_some(actual));
            assert!(others.len() < 3, "{name}: {others:?}, not {expected}");
        }
        self.process().put_back(others);
    }

    /// Expects the start of a run, and causes it unless the call continues.
    async fn start(&mut self, expected: &Value) {
        let (tool, arguments) = (expected["tool"].as_str().unwrap(), &expected["arguments"]);
        if expected.get("cleanup").is_some() {
            return self.start_cleanup(expected).await;
        }
        let is_same =
            |call: &Call| call.is_dropped && call.tool == tool && call.arguments == *arguments;
        let call = match self.calls.iter().position(is_same) {
            Some(call) => call,
            None => self.call(tool, arguments, expected["journal"].as_object()).await,
        };
        self.calls[call].is_dropped = false;
        if let Some((key, response)) = self.response_ahead(expected) {
            self.respond(call, &key, response).await;
        }
        let number = self.expect_start(expected).await;
        self.runs.insert(expected["call"].as_u64().unwrap(), (number, call));
    }

    /// Returns the response that a parked or suspended call continues with.
    fn response_ahead(&self, start: &Value) -> Option<(String, Value)> {
        if self.name != "parked" || start["journal"].as_object()?.is_empty() {
            return None;
        }
        let of_run = |message: &&Value| message["call"] == start["call"];
        let mut later =
            self.lines[self.at..].iter().filter_map(|line| line.get("S")).filter(of_run);
        let response = later.find(|message| message.get("response").is_some())?;
        Some((response["response"].as_str()?.to_owned(), response_of(response)))
    }

    /// Calls a tool, and records a journal before the run that the conversation has.
    async fn call(
        &mut self,
        tool: &str,
        arguments: &Value,
        journal: Option<&Map<String, Value>>,
    ) -> usize {
        let params = json!({"name": tool, "arguments": arguments});
        let request = self.client.send("tools/call", params).await;
        self.calls.push(Call {
            tool: tool.to_owned(),
            arguments: arguments.clone(),
            task: None,
            request,
            is_dropped: false,
            responded: HashSet::new(),
        });
        let call = self.calls.len() - 1;
        let is_task = !is_inline(tool) && self.name != "drop_suspended";
        if is_task {
            let created = self.client.answer(request).await["result"].clone();
            self.calls[call].task = Some(created["taskId"].as_str().unwrap().to_owned());
        }
        let journal = self.whole_journal(journal);
        if !journal.is_empty() {
            let start = json!({"tool": tool, "arguments": arguments, "journal": {}, "attempt": 1});
            let number = self.expect_start(&start).await;
            self.record(number, &journal).await;
            self.drop_run(number, call).await;
        }
        call
    }

    /// Returns the journal of a start, with its pieces in the lines before.
    fn whole_journal(&self, last: Option<&Map<String, Value>>) -> Map<String, Value> {
        let mut journal = last.cloned().unwrap_or_default();
        if self.name == "journal_in_pieces" && !journal.is_empty() {
            let pieces = self.lines.iter().filter(|line| line["S"]["more"] == true);
            journal
                .extend(pieces.flat_map(|line| line["S"]["journal"].as_object().unwrap().clone()));
        }
        journal
    }

    /// Records steps in a run.
    async fn record(&mut self, number: u64, journal: &Map<String, Value>) {
        for (key, entry) in journal {
            let mut end = match (entry.get("v"), entry.get("x"), entry.get("f")) {
                (Some(value), ..) => json!({"done": key, "value": value}),
                (_, Some(value), _) => json!({"done": key, "value": value, "secret": true}),
                (_, _, Some(failure)) => {
                    json!({"failed": key, "error": failure["message"], "permanent": true})
                }
                _ => continue,
            };
            end["call"] = json!(number);
            self.process().write(&json!({"call": number, "step": key})).await;
            self.process().write(&end).await;
            self.expect(&json!({"call": number, "recorded": key})).await;
        }
    }

    /// Drops a run, so that the next one has its journal.
    async fn drop_run(&mut self, number: u64, call: usize) {
        let dropped = json!({"call": number, "dropped": true});
        if self.name != "migrate" {
            let next = self.reload(Code::Next).await;
            self.expect(&json!({"call": number, "drop": "moved"})).await;
            self.process().write(&dropped).await;
            self.process = Some(next);
            return;
        }
        // A call that moves keeps its handler revision; one that was parked does not.
        let input = json!({"call": number, "input": "prelude", "message": "Continue?"});
        self.process().write(&input).await;
        self.expect(&json!({"call": number, "drop": "parked"})).await;
        self.process().write(&dropped).await;
        self.process = Some(self.reload(Code::Next).await);
        let accepted = json!({"action": "accept", "content": {"yes": true}});
        self.respond(call, "prelude", accepted).await;
    }

    /// Reads a start with its whole journal, and returns the number of the run. Skips those of calls
    /// that moved to this process.
    async fn expect_start(&mut self, expected: &Value) -> u64 {
        let mut journal = Map::new();
        let whole = self.whole_journal(expected["journal"].as_object());
        loop {
            let name = self.name.clone();
            let read = self.process().read().await;
            let mut actual = read.unwrap_or_else(|| panic!("{name}: no {expected}"));
            let pieces = actual["journal"].as_object().cloned().unwrap_or_default();
            if actual.get("more").is_some() {
                journal.extend(pieces);
                continue;
            }
            if actual["tool"] != expected["tool"] {
                assert_eq!(name, "drop_moved", "{actual}, not {expected}");
                continue;
            }
            journal.extend(pieces);
            actual["journal"] = Value::Object(journal);
            let key = actual["idempotency_key"].as_str().unwrap_or_default();
            assert_eq!(key.len(), 32, "{actual}");
            let member = if actual.get("cleanup").is_some() { "cleanup" } else { "call" };
            let number = actual[member].as_u64().unwrap();
            let mut expected = with_number(expected, number);
            expected["journal"] = Value::Object(whole);
            for message in [&mut actual, &mut expected] {
                let members = message.as_object_mut().unwrap();
                VARIABLE.iter().for_each(|name| drop(members.remove(*name)));
                // No task of this test expires.
                members.remove("reason");
            }
            if expected.get("call").is_none() && expected.get("cleanup").is_none() {
                expected[member] = json!(number);
            }
            assert_eq!(actual, expected, "{name}");
            return number;
        }
    }

    /// Cancels a task with the journal of a cleanup, and expects the cleanup.
    async fn start_cleanup(&mut self, expected: &Value) {
        let (tool, arguments) = (expected["tool"].as_str().unwrap(), &expected["arguments"]);
        let pieces = self.pieces_of_cleanup(expected);
        let call = self.call(tool, arguments, None).await;
        let start = json!({"tool": tool, "arguments": arguments, "journal": {}, "attempt": 1});
        let number = self.expect_start(&start).await;
        self.record(number, &pieces).await;
        for (key, entry) in pieces.iter().filter(|(_, entry)| entry.get("a").is_some()) {
            let input = json!({"call": number, "input": key, "message": "Order?"});
            self.process().write(&input).await;
            self.respond(call, key, entry["a"].clone()).await;
            let mut response = json!({"call": number, "response": key});
            response["action"] = entry["a"]["action"].clone();
            response["content"] = entry["a"]["content"].clone();
            self.expect(&response).await;
        }
        let wait = json!({"call": number, "external_event": "delivery"});
        self.process().write(&wait).await;
        let task = self.calls[call].task.clone().unwrap();
        let token = json!({"call": number, "completion_token": "delivery", "value": "$ANY"});
        self.expect(&token).await;
        self.client.ask("tasks/cancel", json!({"taskId": task})).await;
        self.expect(&json!({"call": number, "cancel": "requested by the client"})).await;
        let rejected = json!({"call": number, "rejected": "delivery", "kind": "cancelled"});
        self.expect(&rejected).await;
        self.process().write(&json!({"call": number, "error": "cancelled"})).await;
        let mut whole = expected.clone();
        whole["journal"] = Value::Object(pieces);
        let number = self.expect_start(&whole).await;
        self.runs.insert(expected["cleanup"].as_u64().unwrap(), (number, call));
    }

    /// Returns the whole journal of a cleanup.
    fn pieces_of_cleanup(&self, expected: &Value) -> Map<String, Value> {
        let of_cleanup = self.lines.iter().map(|line| &line["S"]);
        let of_cleanup = of_cleanup.filter(|line| line["cleanup"] == expected["cleanup"]);
        of_cleanup.flat_map(|piece| piece["journal"].as_object().unwrap().clone()).collect()
    }

    /// Replaces the code, and returns the new process. The old one stays the current one.
    async fn reload(&mut self, code: Code) -> SpokenProcess {
        let reload = self.served.worker.reload(&self.served.server);
        let next = speak(&self.listener, &self.name, code);
        let (reloaded, process) = tokio::join!(reload, next);
        reloaded.unwrap();
        process
    }

    /// Ends the server. All processes read the end of their input.
    async fn finish(mut self) {
        let Self { served, process, replaced, .. } = &mut self;
        let mut ending = JoinSet::new();
        for process in replaced.drain(..).chain(process.take()) {
            ending.spawn(process.end());
        }
        served.worker.shutdown().await;
        while let Some(ended) = ending.join_next().await {
            ended.unwrap();
        }
    }
}

fn is_inline(tool: &str) -> bool {
    declared(&protocol()).iter().any(|entry| entry["name"] == tool && entry["durable"] == false)
}

/// Returns the input response that leads to a line of the server.
fn response_of(line: &Value) -> Value {
    if let Some(result) = line.get("result") {
        return result.clone();
    }
    let mut response = json!({"action": line["action"]});
    if let Some(content) = line.get("content") {
        response["content"] = content.clone();
    }
    response
}

/// Returns a line with the server's number of the run.
fn with_number(line: &Value, number: u64) -> Value {
    let mut line = line.clone();
    for member in ["call", "cleanup"] {
        if line.get(member).is_some() {
            line[member] = json!(number);
        }
    }
    line
}

/// Returns whether lines have the same members. The text of messages and tokens is the server's.
fn same(expected: &Value, actual: &Value) -> bool {
    let reduced = |line: &Value| {
        let mut line = line.clone();
        if let Some(members) = line.as_object_mut() {
            members.remove("message");
            let is_token = members.contains_key("completion_token");
            if is_token {
                members.remove("value");
            }
        }
        line
    };
    reduced(expected) == reduced(actual)
}
