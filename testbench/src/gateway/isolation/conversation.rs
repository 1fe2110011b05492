//! A call with its input requests, and every message that the client receives.

use std::io;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::hosts::caller::Caller;

/// Timeout of each network operation.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Rounds of one call.
const ROUNDS: usize = 8;

/// Everything that a client received in a call.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Value>,
    /// Number of input requests.
    pub(super) inputs: usize,
}

impl Conversation {
    /// The final message.
    pub(super) fn last(&self) -> &Value {
        self.messages.last().unwrap_or(&Value::Null)
    }

    /// The text of the result.
    pub(super) fn text(&self) -> String {
        crate::hosts::caller::text(self.last())
    }
}

/// Calls a tool. Input requests get a response with `mark`.
pub(super) fn call(
    caller: &Caller,
    tool: &str,
    arguments: &Value,
    mark: &str,
) -> io::Result<Conversation> {
    let params = json!({"name": tool, "arguments": arguments});
    match caller.is_legacy() {
        true => on_stream(caller, params, mark),
        false => in_rounds(caller, params, mark),
    }
}

/// A response to an input request.
pub(super) fn accept(mark: &str) -> Value {
    json!({"action": "accept", "content": {"mark": mark}})
}

/// A legacy call: input requests arrive on its stream.
fn on_stream(caller: &Caller, mut params: Value, mark: &str) -> io::Result<Conversation> {
    let mut talk = Conversation::default();
    params["_meta"] = json!({"progressToken": "same"});
    let mut response = caller.send(&caller.framed("tools/call", params), TIMEOUT)?;
    while let Some(message) = response.message()? {
        let is_last = message.get("method").is_none();
        if message["method"] == "elicitation/create" {
            talk.inputs += 1;
            let id = &message["id"];
            caller.notify(&json!({"jsonrpc": "2.0", "id": id, "result": accept(mark)}))?;
        }
        talk.messages.push(message);
        if is_last {
            return Ok(talk);
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// A modern call: input requests end a round.
fn in_rounds(caller: &Caller, mut params: Value, mark: &str) -> io::Result<Conversation> {
    let mut talk = Conversation::default();
    for _ in 0..ROUNDS {
        let (_, messages) = caller.exchange("tools/call", params.clone())?;
        talk.messages.extend(messages);
        let result = &talk.last()["result"];
        if result["resultType"] != "input_required" {
            return Ok(talk);
        }
        let empty = Map::new();
        let requests = result["inputRequests"].as_object().unwrap_or(&empty);
        let responses: Map<String, Value> =
            requests.keys().map(|key| (key.clone(), accept(mark))).collect();
        params["requestState"] = result["requestState"].clone();
        talk.inputs += responses.len();
        params["inputResponses"] = Value::Object(responses);
    }
    Err(io::Error::other("the call has too many rounds"))
}
