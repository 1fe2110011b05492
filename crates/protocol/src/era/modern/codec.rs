//! The codec of 2026-07-28.

use std::sync::Arc;

use super::{decode, encode, task_request};
use crate::{
    Call, Change, Frame, Message, MessageContext, Profile, ProtocolError, TaskRequest,
    VersionRules,
    era::{params::Request, server_codec::ServerCodec},
};

/// Server-side codec of the modern era.
#[derive(Debug)]
pub(in crate::era) struct ModernCodec;

impl ServerCodec for ModernCodec {
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
        Ok(task_request::read(call))
    }

    fn encode(&self, call: &Call, message: Message, profile: &Profile, out: &mut Vec<u8>) -> Frame {
        encode::message(call, message, profile, out)
    }

    fn encode_trailer(&self, call: &Call, out: &mut Vec<u8>) -> bool {
        encode::trailer(call, out)
    }

    fn encode_change(&self, _change: &Change, _out: &mut Vec<u8>) {
        // Modern clients receive changes through `subscriptions/listen` only.
    }

    fn encode_error(
        &self,
        id: Option<&str>,
        error: &ProtocolError,
        profile: &Profile,
        out: &mut Vec<u8>,
    ) -> u16 {
        encode::error_response(id, error, profile, out)
    }
}
