//! The codec of 2024-11-05 to 2025-11-25.

use std::sync::Arc;

use super::{decode, encode, task_request};
use crate::{
    Call, Change, Frame, Message, MessageContext, Profile, ProtocolError, TaskRequest,
    VersionRules,
    era::{params::Request, server_codec::ServerCodec},
};

/// Server-side codec of the legacy era.
#[derive(Debug)]
pub(in crate::era) struct LegacyCodec;

impl ServerCodec for LegacyCodec {
    fn decode(
        &self,
        rules: &'static VersionRules,
        request: &Request<'_>,
        cx: MessageContext<'_>,
        is_custom: &dyn Fn(&str) -> bool,
    ) -> Result<Arc<Call>, ProtocolError> {
        decode::call(rules, request, cx, is_custom)
    }

    fn task_request(&self, call: &Call) -> Result<TaskRequest, ProtocolError> {
        task_request::read(call)
    }

    fn encode(
        &self,
        call: &Call,
        message: Message,
        _profile: &Profile,
        out: &mut Vec<u8>,
    ) -> Frame {
        encode::message(call, message, out)
    }

    fn encode_trailer(&self, _call: &Call, _out: &mut Vec<u8>) -> bool {
        false
    }

    fn encode_change(&self, change: &Change, out: &mut Vec<u8>) {
        encode::change(change, out);
    }

    fn encode_error(
        &self,
        id: Option<&str>,
        error: &ProtocolError,
        _profile: &Profile,
        out: &mut Vec<u8>,
    ) -> u16 {
        encode::error_response(id, error, out)
    }
}
