//! What a client needs of an era: writing requests, reading results.

use std::fmt;

use http::{HeaderMap, HeaderValue};
use outlive_wire::{ClientCapabilities, InputRequiredResult, Method, RequestId};
use serde_json::value::RawValue;

use super::{Declared, TaskSnapshot};
use crate::{VersionRules, era::headers};

/// Reads and writes the messages of one era, on the client's side. Pure: no async, clock or I/O.
pub trait ClientCodec: fmt::Debug + Sync {
    /// Writes a request.
    fn write(&self, rules: &VersionRules, request: &Outgoing<'_>, me: &Declared, out: &mut Vec<u8>);

    /// Adds the headers that go with a request.
    fn headers(&self, rules: &VersionRules, request: &Outgoing<'_>, headers: &mut HeaderMap);

    /// Reads what the result of a method means.
    ///
    /// # Errors
    ///
    /// In a few words, which rule the result breaks.
    fn read(&self, asked: &ResultContext, result: &str) -> Result<ResultKind, String>;

    /// Writes the response to a request of the server. `task` is the task that the request named, if
    /// it did.
    fn write_response(
        &self,
        rules: &VersionRules,
        id: &RequestId,
        result: &RawValue,
        task: Option<&str>,
        out: &mut Vec<u8>,
    );

    /// Returns the capabilities that the client declares in a handshake.
    fn capabilities(&self, rules: &VersionRules, me: &Declared) -> ClientCapabilities;
}

/// Adds the headers of a request without a body, or of a response.
pub fn version_header(rules: &VersionRules, headers: &mut HeaderMap) {
    if rules.version_header {
        headers.insert(headers::VERSION, HeaderValue::from_static(rules.version.as_str()));
    }
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
