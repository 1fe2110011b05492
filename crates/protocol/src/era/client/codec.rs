//! The client side of a codec: writes requests and reads results.

use std::fmt;

use http::{HeaderMap, HeaderValue};
use outlive_wire::{ClientCapabilities, InputRequiredResult, Method, RequestId};
use serde_json::value::RawValue;

use super::{CapabilityClass, Declared, TaskSnapshot};
use crate::{VersionRules, era::headers};

/// Reads and writes the messages of one era for a client. Pure: no async, clock or I/O.
pub trait ClientCodec: fmt::Debug + Sync {
    /// Writes a request.
    fn write(&self, rules: &VersionRules, request: &Outgoing<'_>, me: &Declared, out: &mut Vec<u8>);

    /// Adds the HTTP headers of a request.
    fn headers(&self, rules: &VersionRules, request: &Outgoing<'_>, headers: &mut HeaderMap);

    /// Determines the kind of a result.
    ///
    /// # Errors
    ///
    /// Returns which rule of the protocol the result violates.
    fn read(&self, asked: &ResultContext, result: &str) -> Result<ResultKind, String>;

    /// Determines the kind of a result, and leaves its parts as text.
    ///
    /// # Errors
    ///
    /// Returns which rule of the protocol the result violates.
    fn read_relayed<'a>(
        &self,
        asked: &ResultContext,
        result: &'a str,
    ) -> Result<RelayedKind<'a>, String>;

    /// Writes the response to a request of the server. `task` is the ID of the task that the
    /// request names.
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

/// Adds the version header, for HTTP requests without a body and for responses.
pub fn version_header(rules: &VersionRules, headers: &mut HeaderMap) {
    if rules.version_header {
        headers.insert(headers::VERSION, HeaderValue::from_static(rules.version.as_str()));
    }
}

/// A request or notification to send.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::exhaustive_structs, reason = "the client builds it, and the codecs read it")]
pub struct Outgoing<'a> {
    /// Request ID; `None` for a notification.
    pub id: Option<u64>,
    /// Name of the method.
    pub method: &'a str,
    /// Parameters: the JSON text of an object, without `_meta`.
    pub params: &'a str,
    /// Further members of the parameters: fragments of JSON text that are written one after the
    /// other, without braces and without `_meta`.
    pub members: &'a [&'a str],
    /// Additional members of `_meta`, without braces. The codec adds the members that the version
    /// requires.
    pub meta: &'a str,
    /// Name, URI or task ID for the `Mcp-Name` header, if the method has one.
    pub name: Option<&'a str>,
    /// Names and values of the arguments that headers repeat.
    pub repeated: &'a [(String, String)],
    /// Whether the client accepts a task as the result.
    pub holds_tasks: bool,
    /// The capability class that a modern request declares, in place of the client's capabilities.
    pub class: Option<CapabilityClass>,
}

/// The request that a result belongs to.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the client builds it, and the codecs read it")]
pub struct ResultContext {
    /// Method of the request; `None` for a custom method.
    pub method: Option<Method>,
    /// Whether the client accepts a task as the result.
    pub holds_tasks: bool,
}

/// The kind of a result.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "every reader must handle each kind")]
pub enum ResultKind {
    /// The complete result of the method.
    Complete,
    /// The server requests input before it can complete the call.
    InputRequired(Box<InputRequiredResult>),
    /// The call became a task.
    Task(Box<TaskSnapshot>),
}

/// The kind of a result whose parts stay text.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "every reader must handle each kind")]
pub enum RelayedKind<'a> {
    /// The complete result of the method.
    Complete,
    /// The server requests input before it can complete the call.
    InputRequired {
        /// The input requests: the JSON text of an object.
        requests: Option<&'a RawValue>,
        /// The request state.
        state: Option<String>,
        /// The `_meta` of the result.
        meta: Option<&'a RawValue>,
    },
    /// The call became a task.
    Task(Box<TaskSnapshot>),
}
