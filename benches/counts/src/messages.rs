//! The measured calls, byte for byte.
//!
//! IDs have a fixed number of digits, so that only the ID of a message is replaced.

use memchr::memmem;

/// The first request ID.
pub const FIRST_ID: u32 = 1_000_000;

/// The argument and result of the tool.
pub const TEXT: &str = "the quick brown fox jumps over the lazy dog";

/// A call of 2026-07-28 as clients send it.
pub fn modern_call() -> String {
    let info = r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},"#;
    modern(&modern_params(TEXT, info))
}

/// A minimal call of 270 bytes.
pub fn small_modern_call() -> String {
    modern(&modern_params(SMALL_TEXT, ""))
}

/// Like [`small_modern_call`], with `params` before `method`.
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

/// A call of 2025-11-25 in a session.
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

/// A request of 2026-07-28 for the first page of tools.
pub const LIST_TOOLS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// The same for the page at a pagination cursor, which needs no escapes.
pub fn list_tools_after(cursor: &str) -> String {
    LIST_TOOLS.replace(r#""params":{"#, &format!(r#""params":{{"cursor":"{cursor}","#))
}

/// The headers that go with [`LIST_TOOLS`].
pub const LIST_TOOLS_HEADERS: &[(&str, &str)] =
    &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];

/// The headers that go with [`modern_call`].
pub const MODERN_CALL_HEADERS: &[(&str, &str)] =
    &[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")];

/// The token of a caller.
pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// The headers of [`modern_call`] from a caller with a token and a local origin.
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

/// The same for a tool of another name.
pub fn create_task_of(tool: &str) -> String {
    modern(&format!(r#"{{"name":"{tool}","arguments":{{"message":"{TEXT}"}},{TASK_META}}}"#))
}

/// The whole `tasks/get` request of 2026-07-28.
pub fn get_task(id: &str) -> Vec<u8> {
    get_task_at("/mcp", id)
}

/// The same for another endpoint path.
pub fn get_task_at(path: &str, id: &str) -> Vec<u8> {
    http_request("POST", path, &get_task_headers(id), &get_task_body(id))
}

/// The `tasks/get` message of 2026-07-28.
pub fn get_task_body(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{FIRST_ID},"method":"tasks/get","params":{{"taskId":"{id}",{TASK_META}}}}}"#
    )
}

/// The headers that go with [`get_task_body`].
pub fn get_task_headers(id: &str) -> [(&str, &str); 3] {
    [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tasks/get"), ("mcp-name", id)]
}

/// A call of 2026-07-28 that reports `steps` progress notifications.
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

/// A text of this many bytes without characters to escape.
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

/// A message whose ID can be replaced in place.
#[derive(Clone, Debug)]
pub struct Numbered {
    bytes: Vec<u8>,
    at: usize,
}

impl Numbered {
    /// Creates it from a message with the ID [`FIRST_ID`]. Returns `None` if the ID is missing.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        let bytes = bytes.into();
        let id = format!(r#""id":{FIRST_ID}"#);
        let at = memmem::find(&bytes, id.as_bytes())? + r#""id":"#.len();
        Some(Self { bytes, at })
    }

    /// Replaces the ID with one of the same length.
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

/// An HTTP request as bytes.
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

/// Returns the task ID in a response.
pub fn task_id(answer: &[u8]) -> Option<String> {
    const NAME: &[u8] = br#""taskId":""#;
    let rest = &answer[memmem::find(answer, NAME)? + NAME.len()..];
    str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok().map(str::to_owned)
}
