//! The calls that are measured, byte for byte.
//!
//! Ids have a fixed number of digits: a message is written once, and only its id is exchanged.

use memchr::memmem;

/// The first id that is given.
pub const FIRST_ID: u32 = 1_000_000;

/// What the tool is told, and says again.
pub const TEXT: &str = "the quick brown fox jumps over the lazy dog";

/// A call of 2026-07-28 as clients send it.
pub fn modern_call() -> String {
    let info = r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"#;
    modern(&modern_params(TEXT, info))
}

/// A call of 270 bytes, with nothing in it that could be left out but the text.
pub fn small_modern_call() -> String {
    modern(&modern_params(SMALL_TEXT, ""))
}

/// As [`small_modern_call`], with `params` before `method`.
pub fn small_modern_call_reordered() -> String {
    let params = modern_params(SMALL_TEXT, "");
    format!(r#"{{"params":{params},"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call"}}"#)
}

const SMALL_TEXT: &str = "the quick brown fox jumps over the lazy dog and again";

fn modern(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{params}}}"#)
}

fn modern_params(text: &str, info: &str) -> String {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    format!(
        r#"{{"name":"echo","arguments":{{"message":"{text}"}},"_meta":{{{version},{info}{capabilities}}}}}"#
    )
}

/// A call of 2025-11-25, within a session.
pub fn legacy_call() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tools/call","params":{{"name":"echo","arguments":{{"message":"{TEXT}"}}}}}}"#
    )
}

/// The handshake of 2025-11-25.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}"#;

/// The end of the handshake.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A subscription of 2026-07-28.
pub const LISTEN: &str = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// The headers that go with [`modern_call`].
pub const MODERN_CALL_HEADERS: &[(&str, &str)] =
    &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")];

/// What a caller shows.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The headers of [`modern_call`] by a caller that shows a token, from a page of this machine.
pub const FULL_CALL_HEADERS: &[(&str, &str)] = &[
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
    ("origin", "http://localhost"),
    ("authorization", "Bearer 0123456789abcdef0123456789abcdef"),
];

/// The headers that go with [`create_task`].
pub const CREATE_TASK_HEADERS: &[(&str, &str)] = MODERN_CALL_HEADERS;

const TASK_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// A call of 2026-07-28 that becomes a task.
pub fn create_task() -> String {
    create_task_of("echo")
}

/// The same to a tool of another name.
pub fn create_task_of(tool: &str) -> String {
    modern(&format!(r#"{{"name":"{tool}","arguments":{{"message":"{TEXT}"}},{TASK_META}}}"#))
}

/// The whole request that looks at a task, of 2026-07-28.
pub fn get_task(id: &str) -> Vec<u8> {
    get_task_at("/mcp", id)
}

/// The same to a server whose endpoint is at another path.
pub fn get_task_at(path: &str, id: &str) -> Vec<u8> {
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tasks/get"), ("mcp-name", id)];
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tasks/get","params":{{"taskId":"{id}",{TASK_META}}}}}"#
    );
    http_request("POST", path, &headers, &body)
}

/// A call of 2026-07-28 that is to report so many steps, and the headers that go with it.
pub fn count_call(steps: u32) -> String {
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let capabilities = r#""io.modelcontextprotocol/clientCapabilities":{}"#;
    modern(&format!(
        r#"{{"name":"count","arguments":{{"steps":{steps}}},"_meta":{{"progressToken":1,{version},{capabilities}}}}}"#
    ))
}

/// The headers that go with [`count_call`].
pub const COUNT_HEADERS: &[(&str, &str)] =
    &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "count")];

/// A text of so many bytes, in which nothing has to be escaped.
pub fn text_of(bytes: usize) -> String {
    TEXT.chars().chain([' ']).cycle().take(bytes).collect()
}

/// A call of 2026-07-28 with this text.
pub fn modern_call_with(text: &str) -> String {
    modern(&modern_params(text, ""))
}

/// The headers that go with [`LISTEN`].
pub const LISTEN_HEADERS: &[(&str, &str)] =
    &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "subscriptions/listen")];

/// A message whose id can be exchanged without writing the rest of it again.
#[derive(Clone, Debug)]
pub struct Numbered {
    bytes: Vec<u8>,
    at: usize,
}

impl Numbered {
    /// Takes a message with the id [`FIRST_ID`]; `None` if it is not there.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        let bytes = bytes.into();
        let id = format!(r#""id":{FIRST_ID}"#);
        let at = memmem::find(&bytes, id.as_bytes())? + r#""id":"#.len();
        Some(Self { bytes, at })
    }

    /// Exchanges the id. It has as many digits as [`FIRST_ID`].
    pub fn set(&mut self, mut id: u32) {
        for digit in self.bytes[self.at..self.at + 7].iter_mut().rev() {
            *digit = b'0' + (id % 10) as u8;
            id /= 10;
        }
    }

    /// The message.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The id after `id`.
pub fn next_id(id: u32) -> u32 {
    if id == 9_999_999 { FIRST_ID } else { id + 1 }
}

/// An HTTP request as it stands on the wire.
pub fn http_request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n"
    );
    if method == "POST" {
        head.push_str(&format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ));
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{head}\r\n{body}").into_bytes()
}

/// The id of the task that an answer tells of.
pub fn task_id(answer: &[u8]) -> Option<String> {
    const NAME: &[u8] = br#""taskId":""#;
    let rest = &answer[memmem::find(answer, NAME)? + NAME.len()..];
    str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok().map(str::to_owned)
}
