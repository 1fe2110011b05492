//! A line that exceeds the limit of a message. Only its ends are stored, which tell the request that
//! it responds to.

use bytes::Bytes;
use memchr::memmem;

use super::spec::MESSAGE_BYTES;

/// Bytes of each end.
const END: usize = 256;

/// Code of an internal error of JSON-RPC.
const INTERNAL: i32 = -32603;

/// A line that is skipped.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LongLine {
    bytes: usize,
    start: Vec<u8>,
    end: Vec<u8>,
}

/// First members of a message, up to the first object or array.
#[derive(Debug, Default)]
struct Start {
    id: Option<u64>,
    has_method: bool,
}

impl LongLine {
    pub(super) fn new(line: &[u8]) -> Self {
        let mut long = Self::default();
        long.push(line);
        long
    }

    /// Adds bytes of the line.
    pub(super) fn push(&mut self, part: &[u8]) {
        self.bytes = self.bytes.saturating_add(part.len());
        let room = END.saturating_sub(self.start.len()).min(part.len());
        self.start.extend_from_slice(&part[..room]);
        self.end.extend_from_slice(&part[part.len().saturating_sub(END)..]);
        let excess = self.end.len().saturating_sub(END);
        self.end.drain(..excess);
    }

    /// Returns the response that a request gets instead of the line. `only` is the only open request,
    /// which the line answers if it names none. Returns `None` for requests and notifications.
    pub(super) fn response(&self, only: Option<u64>, limit: usize) -> Option<Bytes> {
        let start = Start::read(&self.start);
        if start.has_method {
            return None;
        }
        let id = start.id.or_else(|| id_at_end(&self.end)).or(only)?;
        let bytes = self.bytes;
        let message = format!("the response has {bytes} bytes, which exceeds the limit of {limit}");
        let error = serde_json::json!({
            "code": INTERNAL, "message": message, "data": {MESSAGE_BYTES: bytes}
        });
        let response = serde_json::json!({"jsonrpc": "2.0", "id": id, "error": error});
        Some(response.to_string().into())
    }
}

impl Start {
    fn read(line: &[u8]) -> Self {
        let mut start = Self::default();
        let Some(mut rest) = line.trim_ascii_start().strip_prefix(b"{") else { return start };
        while let Some((name, value)) = member(rest) {
            start.has_method |= name == b"method";
            let length = match value.first() {
                Some(b'"') => text(value).map(|text| text.len() + 2),
                Some(b'{' | b'[') => None,
                _ => value.iter().position(|byte| matches!(byte, b',' | b'}')),
            };
            let Some(length) = length else { break };
            if name == b"id" {
                start.id = number(&value[..length]);
            }
            let Some(after) = value[length..].trim_ascii_start().strip_prefix(b",") else { break };
            rest = after;
        }
        start
    }
}

/// Returns the ID of a message whose last members are the ID and, possibly, the version.
fn id_at_end(end: &[u8]) -> Option<u64> {
    let members = end.trim_ascii_end().strip_suffix(b"}")?;
    let at = memmem::rfind(members, b"\"id\"")?;
    if !members[..at].trim_ascii_end().ends_with(b",") {
        return None;
    }
    let (_, value) = member(&members[at..])?;
    match value.iter().position(|byte| *byte == b',') {
        None => number(value),
        Some(comma) => {
            let (name, version) = member(&value[comma + 1..])?;
            let is_last = name == b"jsonrpc" && version.trim_ascii() == b"\"2.0\"";
            is_last.then(|| number(&value[..comma]))?
        }
    }
}

/// Returns the name of the first member, and the text from its value on.
fn member(members: &[u8]) -> Option<(&[u8], &[u8])> {
    let members = members.trim_ascii_start();
    let name = text(members)?;
    let value = members[name.len() + 2..].trim_ascii_start().strip_prefix(b":")?;
    Some((name, value.trim_ascii_start()))
}

/// Returns the text between quotes. Names and versions have no escapes.
fn text(quoted: &[u8]) -> Option<&[u8]> {
    let text = quoted.strip_prefix(b"\"")?;
    Some(&text[..memchr::memchr(b'"', text)?])
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value.trim_ascii()).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{END, LongLine};

    fn answered(line: &str) -> Option<u64> {
        let mut long = LongLine::default();
        line.as_bytes().chunks(7).for_each(|part| long.push(part));
        assert!(long.start.len() <= END && long.end.len() <= END);
        let response = long.response(Some(1), 10)?;
        let response: serde_json::Value = serde_json::from_slice(&response).unwrap();
        assert_eq!(response["error"]["data"]["dev.outlive/messageBytes"], line.len());
        response["id"].as_u64()
    }

    #[test]
    fn request_of_long_response_is_found_at_either_end() {
        let text = format!(r#"{{"content": [{{"id": 5}}], "text": "{}"}}"#, "x".repeat(1_000));
        for line in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{text}}}"#),
            format!(r#"{{"id": 7, "jsonrpc": "2.0", "result": {text}}}"#),
            format!(r#"{{"result":{text},"jsonrpc":"2.0","id":7}}"#),
            format!(r#"{{"result": {text}, "id": 7, "jsonrpc": "2.0"}} "#),
        ] {
            assert_eq!(answered(&line), Some(7), "{line}");
        }
    }

    #[test]
    fn long_line_without_id_answers_the_only_request() {
        let long = "x".repeat(1_000);
        assert_eq!(answered(&long), Some(1));
        let nested = format!(r#"{{"result":{{"text":"{long}","other":3,"id":7}}}}"#);
        assert_eq!(answered(&nested), Some(1), "the ID is not that of the message");
        let quoted = format!(r#"{{"result":"{long}, \"id\":7}}"#);
        assert_eq!(answered(&quoted), Some(1));
    }

    #[test]
    fn long_notification_answers_nothing() {
        let long = "x".repeat(1_000);
        let line = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{{"a":"{long}"}},"id":7}}"#);
        assert_eq!(answered(&line), None);
    }
}
