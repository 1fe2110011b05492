//! What a server needs of an era: reading requests, writing messages.

use std::{fmt, sync::Arc};

use super::params::Request;
use crate::{
    Call, Change, Frame, Message, MessageContext, Profile, ProtocolError, TaskRequest, VersionRules,
};

/// Reads and writes the messages of one era, on the server's side. Pure: no async, clock or I/O.
pub trait ServerCodec: fmt::Debug + Sync {
    /// Checks a request and makes a call of it. `is_custom` tells whether the application handles a
    /// method that the specification does not name.
    ///
    /// # Errors
    ///
    /// If the request breaks a rule of its version.
    fn decode(
        &self,
        rules: &'static VersionRules,
        request: &Request<'_>,
        cx: MessageContext<'_>,
        is_custom: &dyn Fn(&str) -> bool,
    ) -> Result<Arc<Call>, ProtocolError>;

    /// Reads what the client of a call says about tasks.
    ///
    /// # Errors
    ///
    /// If the client requests a task in a way that the server cannot understand.
    fn task_request(&self, call: &Call) -> Result<TaskRequest, ProtocolError>;

    /// Writes one message of a run.
    fn encode(&self, call: &Call, message: Message, profile: &Profile, out: &mut Vec<u8>) -> Frame;

    /// Writes what follows the end of a call on a pipe; `false` if nothing does.
    fn encode_trailer(&self, call: &Call, out: &mut Vec<u8>) -> bool;

    /// Writes a change for a client that receives it outside of any call.
    fn encode_change(&self, change: &Change, out: &mut Vec<u8>);

    /// Writes an error response and returns the HTTP status that goes with it. Without an ID the
    /// member is left out: the server could not read it.
    fn encode_error(
        &self,
        id: Option<&str>,
        error: &ProtocolError,
        profile: &Profile,
        out: &mut Vec<u8>,
    ) -> u16;
}
