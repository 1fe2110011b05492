//! What a client asks of a revision: how a request is written, and what an answer to it means.
//!
//! The counterpart of [`Era`](super::Era), on the other side of the wire and behind the same wall.
//! The core speaks modern semantics: every request carries what it needs, an answer is complete,
//! asks, or names a task. The legacy revisions are translated.

mod declared;
mod mirror;
mod task;

use std::fmt;

use http::HeaderMap;
use outlive_wire::{ClientCapabilities, InputRequiredResult, Method, RequestId, Version};
use serde_json::value::RawValue;

pub use declared::Declared;
pub use mirror::{mirrored_value, name_in};
pub use task::{TaskSnapshot, TaskStatus, read_task};

pub(super) use task::read_nested;

use super::{legacy, modern};

/// One revision, from the client's side.
pub trait ClientCodec: fmt::Debug + Send + Sync {
    /// The revision, as a value to show; never to compare.
    fn version(&self) -> Version;

    /// Whether a client may call the method.
    fn has(&self, method: Method) -> bool;

    /// Whether it begins with a handshake, and remembers it.
    fn has_sessions(&self) -> bool;

    /// Whether closing the stream of a request cancels it; otherwise that has to be said.
    fn closing_cancels(&self) -> bool;

    /// Whether a stream that breaks can be taken up again.
    fn resumes(&self) -> bool;

    /// Whether a server may send requests of its own.
    fn is_asked(&self) -> bool;

    /// Which tasks there are.
    fn tasks(&self) -> TaskDialect;

    /// Whether several messages may come as one array.
    fn takes_batches(&self) -> bool {
        false
    }

    /// Writes a request.
    fn write(&self, request: &Outgoing<'_>, me: &Declared, out: &mut Vec<u8>);

    /// The headers that go with it.
    fn headers(&self, request: &Outgoing<'_>, headers: &mut HeaderMap);

    /// The headers of a request without a body, or of an answer.
    fn plain_headers(&self, headers: &mut HeaderMap);

    /// What the result of a method means.
    ///
    /// # Errors
    ///
    /// In a few words, which rule the result breaks.
    fn read(&self, asked: &ResultContext, result: &str) -> Result<ResultKind, String>;

    /// Reads the state of a task: what `tasks/get` answers.
    ///
    /// # Errors
    ///
    /// In a few words, why it is none.
    fn task(&self, result: &str) -> Result<TaskSnapshot, String> {
        read_task(result)
    }

    /// Writes the answer to a request of the server. `task` is the task that the request named, if
    /// it did.
    fn write_answer(
        &self,
        id: &RequestId,
        result: &RawValue,
        task: Option<&str>,
        out: &mut Vec<u8>,
    );

    /// What is said of the client's capabilities when the two meet.
    fn capabilities(&self, me: &Declared) -> ClientCapabilities;
}

/// Which tasks a revision has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the ways the revisions know")]
pub enum TaskDialect {
    /// None.
    None,
    /// A client asks for one, and fetches its result.
    Requested,
    /// A server gives one to whoever said that it can hold it.
    Offered,
}

/// A request that is about to be sent.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the client, read by the eras, both ours")]
pub struct Outgoing<'a> {
    /// Its id; `None` for a notification.
    pub id: Option<u64>,
    /// Its method.
    pub method: &'a str,
    /// Its parameters: the text of an object, without `_meta`.
    pub params: &'a str,
    /// What goes into `_meta` beside what the revision wants there: members, without braces.
    pub meta: &'a str,
    /// The name, URI or task that it is about, if its method has one.
    pub name: Option<&'a str>,
    /// Arguments that are repeated in headers: names and values.
    pub repeated: &'a [(String, String)],
    /// Whether its answer may be a task.
    pub holds_tasks: bool,
}

/// What a result is the answer to.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the client, read by the eras, both ours")]
pub struct ResultContext {
    /// The method, if a revision has it.
    pub method: Option<Method>,
    /// Whether a task was acceptable.
    pub holds_tasks: bool,
}

/// What a result means.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "every reader must know them all")]
pub enum ResultKind {
    /// It is the result.
    Complete,
    /// The server wants answers first.
    InputRequired(Box<InputRequiredResult>),
    /// The work has become a task.
    Task(Box<TaskSnapshot>),
}

/// The newest revision without a handshake.
pub fn newest_modern() -> &'static dyn ClientCodec {
    &modern::MODERN
}

/// The newest revision with a handshake.
pub fn newest_legacy() -> &'static dyn ClientCodec {
    legacy::newest()
}

/// The rules of a revision.
pub fn client_era(version: &str) -> Option<&'static dyn ClientCodec> {
    match legacy::revision(version) {
        Some(legacy) => Some(legacy),
        None => {
            let modern: &dyn ClientCodec = &modern::MODERN;
            (modern.version().as_str() == version).then_some(&modern::MODERN)
        }
    }
}

/// The best of the revisions that a server says it speaks.
pub fn choose<'a>(
    supported: impl IntoIterator<Item = &'a str>,
) -> Option<&'static dyn ClientCodec> {
    supported.into_iter().filter_map(client_era).max_by_key(|era| era.version())
}

/// Whether a refusal can only have come from a server of the newer generation, so that a handshake
/// would be wasted on it.
pub fn is_modern_refusal(code: i32) -> bool {
    modern::is_own_code(code)
}

/// Writes a request: the parameters as they are, and `_meta` behind them.
pub(super) fn write(request: &Outgoing<'_>, own_meta: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = request.id {
        out.extend_from_slice(format!(r#""id":{id},"#).as_bytes());
    }
    out.extend_from_slice(br#""method":"#);
    super::error::put(&request.method, out);
    let members = request.params.trim_ascii();
    let members = members.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or("");
    let members = members.trim_ascii();
    let has_meta = !own_meta.is_empty() || !request.meta.is_empty();
    if has_meta || !members.is_empty() {
        out.extend_from_slice(br#","params":{"#);
        out.extend_from_slice(members.as_bytes());
        if has_meta {
            if !members.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(br#""_meta":{"#);
            out.extend_from_slice(own_meta.as_bytes());
            if !own_meta.is_empty() && !request.meta.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(request.meta.as_bytes());
            out.push(b'}');
        }
        out.push(b'}');
    }
    out.push(b'}');
}
