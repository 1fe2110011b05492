//! 2024-11-05 to 2025-11-25: a handshake opens a session, and the session remembers.
//!
//! One value per revision; what differs between them is asked of the value and nowhere else.
//! Spec: <https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle>

mod client;
mod decode;
mod encode;
mod handshake;
mod input;
mod methods;
mod partial;
mod shape;
mod task;

use http::HeaderMap;
use outlive_wire::{ErrorObject, InputRequest, Method, RawJson, Version, code};

pub(super) use handshake::requested_version;
pub(crate) use handshake::{Reopened, open_session, reopen_session};

use super::{Era, EventIdMode, Frame, InputMode, OnDisconnect, modern::headers};
use crate::{
    Call, Change, ClientTaskSupport, Message, Profile, ProtocolError, ResponseModes, error::short,
};

/// The rules of one legacy revision.
#[derive(Debug)]
pub(crate) struct Legacy {
    version: Version,
}

/// What its tasks are noted as having been asked for in.
pub(super) const DIALECT: &str = "legacy";

/// What tasks are noted as whose content is sent as it grows.
pub(super) const STREAMING: &str = "legacy-streaming";

/// Newest first, as they are offered.
static REVISIONS: [Legacy; 4] = [
    Legacy { version: Version::V2025_11_25 },
    Legacy { version: Version::V2025_06_18 },
    Legacy { version: Version::V2025_03_26 },
    Legacy { version: Version::V2024_11_05 },
];

/// The revision that is offered to a client whose own we do not know.
pub(super) fn newest() -> &'static Legacy {
    &REVISIONS[0]
}

/// The revision with this date.
pub(super) fn revision(date: &str) -> Option<&'static Legacy> {
    REVISIONS.iter().find(|legacy| legacy.version.as_str() == date)
}

/// The legacy rules behind an era, if it is one of them.
pub(super) fn of(era: &dyn Era) -> Option<&'static Legacy> {
    REVISIONS.iter().find(|legacy| legacy.version == era.version())
}

/// The revision that the headers of a request without a session name. One that names none is
/// from before the header existed.
pub(super) fn named_in(headers: &HeaderMap) -> Result<&'static Legacy, ProtocolError> {
    let Some(value) = version_header(headers)? else {
        return revision(Version::V2025_03_26.as_str()).ok_or(ProtocolError::Internal);
    };
    str::from_utf8(value).ok().and_then(revision).ok_or_else(|| {
        let value = String::from_utf8_lossy(value);
        ProtocolError::invalid_request(format!(
            "unsupported MCP-Protocol-Version `{}`",
            short(&value)
        ))
    })
}

/// A header that names a protocol version which is not served refuses the request. Another one than
/// the session agreed on does not: clients exist that send their newest, and the session's rules apply.
pub(super) fn check_version_header(
    era: &dyn Era,
    headers: &HeaderMap,
) -> Result<(), ProtocolError> {
    match version_header(headers)? {
        None => Ok(()),
        Some(value) if value == era.version().as_str().as_bytes() => Ok(()),
        Some(_) => named_in(headers).map(drop),
    }
}

/// Two of them are no version, and a mismatch of headers is a thing that only 2026-07-28 knows.
fn version_header(headers: &HeaderMap) -> Result<Option<&[u8]>, ProtocolError> {
    headers::single(headers, &headers::VERSION)
        .map_err(|fault| ProtocolError::invalid_request(fault.to_string()))
}

impl Legacy {
    fn since(&self, version: Version) -> bool {
        self.version >= version
    }
}

impl Era for Legacy {
    fn version(&self) -> Version {
        self.version
    }

    fn has(&self, method: Method) -> bool {
        methods::HAS.contains(&method)
            || (self.since(Version::V2025_11_25) && methods::TASKS.contains(&method))
    }

    fn abandoned(&self) -> OnDisconnect {
        OnDisconnect::Continue
    }

    fn asking(&self) -> InputMode {
        InputMode::Stream
    }

    fn has_words_for(&self, request: &InputRequest) -> bool {
        input::has_words_for(self, request)
    }

    fn tells_progress_of_tasks(&self) -> bool {
        true
    }

    fn hosts(&self, call: &Call, request: &InputRequest) -> bool {
        self.since(Version::V2025_11_25) && input::hosts(call, request)
    }

    fn holding(&self, call: &Call) -> Result<ClientTaskSupport, ProtocolError> {
        match self.since(Version::V2025_11_25) {
            true => decode::holding(call),
            false => Ok(ClientTaskSupport::Unsupported),
        }
    }

    fn response_modes(&self, call: &Call) -> Result<Option<ResponseModes>, ProtocolError> {
        decode::response_modes(call)
    }

    fn emitted_after(&self, call: &Call) -> Result<Option<u64>, ProtocolError> {
        decode::last_seq_nr(call)
    }

    fn streaming_dialect(&self) -> &'static str {
        STREAMING
    }

    fn streams(&self, dialect: &str) -> bool {
        dialect == STREAMING
    }

    fn task_required(&self, _capability: RawJson) -> ProtocolError {
        ProtocolError::Custom(ErrorObject {
            code: code::METHOD_NOT_FOUND,
            message: "this tool runs only as a task; call it with `params.task`".to_owned(),
            data: None,
        })
    }

    fn dialect(&self) -> &'static str {
        DIALECT
    }

    fn sees(&self, dialect: &str) -> bool {
        dialect == self.dialect() || dialect == STREAMING
    }

    fn cancels_at_once(&self) -> bool {
        true
    }

    fn takes_batches(&self) -> bool {
        self.version == Version::V2025_03_26
    }

    fn numbering(&self) -> EventIdMode {
        match self.version {
            Version::V2024_11_05 => EventIdMode::None,
            // Clients before 2025-11-25 may try to read the empty first event as JSON.
            Version::V2025_03_26 | Version::V2025_06_18 => EventIdMode::Ids,
            _ => EventIdMode::Primed,
        }
    }

    fn encode(&self, call: &Call, message: Message, profile: &Profile, out: &mut Vec<u8>) -> Frame {
        encode::message(self, call, message, profile, out)
    }

    fn encode_change(&self, change: &Change, out: &mut Vec<u8>) {
        encode::change(change, out);
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
