//! The server side of a codec: decodes requests and encodes messages.

use std::{fmt, sync::Arc};

use super::params::Request;
use crate::{
    Call, Change, Frame, Message, MessageContext, Profile, ProtocolError, TaskRequest, VersionRules,
};

/// Decodes and encodes the messages of one era for a server. Pure: no async, clock or I/O.
pub trait ServerCodec: fmt::Debug + Sync {
    /// Validates a request and builds a call. `is_custom` returns whether the application handles a
    /// custom method.
    ///
    /// # Errors
    ///
    /// If the request violates a rule of its version.
    fn decode(
        &self,
        rules: &'static VersionRules,
        request: &Request<'_>,
        cx: MessageContext<'_>,
        is_custom: &dyn Fn(&str) -> bool,
    ) -> Result<Arc<Call>, ProtocolError>;

    /// Reads the task members of a request.
    ///
    /// # Errors
    ///
    /// If the task members are invalid.
    fn task_request(&self, call: &Call) -> Result<TaskRequest, ProtocolError>;

    /// Encodes one message of a run.
    fn encode(&self, call: &Call, message: Message, profile: &Profile, out: &mut Vec<u8>) -> Frame;

    /// Encodes the message that follows the response on stdio. Returns `false` if none follows.
    fn encode_trailer(&self, call: &Call, out: &mut Vec<u8>) -> bool;

    /// Encodes a change for a client that receives changes outside of calls.
    fn encode_change(&self, change: &Change, out: &mut Vec<u8>);

    /// Encodes an error response. Returns its HTTP status. Omits the ID if the server could not
    /// read it.
    fn encode_error(
        &self,
        id: Option<&str>,
        error: &ProtocolError,
        profile: &Profile,
        out: &mut Vec<u8>,
    ) -> u16;
}
