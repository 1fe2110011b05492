//! 2026-07-28: no handshake, no session. Every request carries version, capabilities and identity
//! in its `_meta`; nothing is remembered between requests.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic>

mod client;
mod decode;
mod encode;
pub(super) mod headers;
mod methods;
mod partial;
mod task;
mod task_list;

use outlive_wire::{InputRequest, Method, RawJson, Version};

pub(super) use client::{client_meta, is_own_code};
pub(super) use encode::{stamp, tasks_capability};
pub(super) use task_list::task_list;

use super::{Era, Frame, InputMode, OnDisconnect};
use crate::{Call, Change, ClientTaskSupport, Message, Profile, ProtocolError};

/// What its tasks are noted as having been asked for in.
pub(super) const DIALECT: &str = "modern";

/// The extension that tasks are.
pub(super) const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Our own extension, by which clients read what tasks emit while they run.
pub(super) const PARTIALS: &str = "dev.outlive/task-partials";

/// The rules of 2026-07-28.
#[derive(Debug)]
pub(crate) struct Modern;

/// There is one of them.
pub(super) static MODERN: Modern = Modern;

impl Era for Modern {
    fn version(&self) -> Version {
        Version::V2026_07_28
    }

    fn has(&self, method: Method) -> bool {
        methods::HAS.contains(&method)
    }

    fn abandoned(&self) -> OnDisconnect {
        OnDisconnect::Cancel
    }

    fn asking(&self) -> InputMode {
        InputMode::RoundTrip
    }

    fn has_words_for(&self, request: &InputRequest) -> bool {
        !matches!(request, InputRequest::Unknown(_))
    }

    fn holding(&self, call: &Call) -> Result<ClientTaskSupport, ProtocolError> {
        Ok(decode::holding(call))
    }

    fn emitted_after(&self, call: &Call) -> Result<Option<u64>, ProtocolError> {
        partial::after_seq(call)
    }

    fn reads_partials(&self, call: &Call) -> bool {
        decode::declares(call, PARTIALS)
    }

    fn task_required(&self, capability: RawJson) -> ProtocolError {
        ProtocolError::MissingCapability { required: capability }
    }

    fn dialect(&self) -> &'static str {
        DIALECT
    }

    fn sees(&self, _dialect: &str) -> bool {
        true
    }

    fn cancels_at_once(&self) -> bool {
        false
    }

    fn mirrors_headers(&self) -> bool {
        true
    }

    fn encode(&self, call: &Call, message: Message, profile: &Profile, out: &mut Vec<u8>) -> Frame {
        encode::message(call, message, profile, out)
    }

    fn epilogue(&self, call: &Call, out: &mut Vec<u8>) -> bool {
        encode::epilogue(call, out)
    }

    fn encode_change(&self, _change: &Change, _out: &mut Vec<u8>) {
        // Modern clients hear of changes through `subscriptions/listen` only.
    }

    fn refuse(
        &self,
        id: Option<&str>,
        fault: &ProtocolError,
        _profile: &Profile,
        out: &mut Vec<u8>,
    ) -> u16 {
        encode::refuse(id, fault, out)
    }
}
