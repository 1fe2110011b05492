//! The generations of the protocol, behind one wall.
//!
//! The core speaks one language: a request that carries everything it needs. That is what
//! 2026-07-28 says on the wire (`modern`); the revisions before it (`legacy`) are translated,
//! with the memory of their session. Nobody outside this folder compares versions: what differs
//! between them is asked of the [`Era`], which is pure. No async, no clock, no I/O.

pub mod client;
mod error;
mod input;
mod legacy;
mod modern;
mod notify;
mod params;
mod request_scanner;
mod select;
mod string;
mod tool_result;

use std::{fmt, time::Duration};

use outlive_wire::{Implementation, InputRequest, Method, RawJson, Version};

use std::sync::Arc;

use bytestring::ByteString;

use crate::{
    Call, Change, ChangeBus, ChangeFilter, ClientTaskSupport, Message, MessageContext, Profile,
    ProtocolError, ResponseModes, Session, TaskView,
};

pub(crate) use legacy::{Reopened, open_session, reopen_session};
pub(crate) use params::Request;
pub(crate) use select::{Selected, batch_era, check_notification, select};

/// One revision of the protocol: which methods exist, how an answer is written.
pub trait Era: fmt::Debug + Send + Sync {
    /// The revision, as a value to show; never to compare.
    fn version(&self) -> Version;

    /// Whether this revision has the method. One that is absent is an unknown method.
    fn has(&self, method: Method) -> bool;

    /// What happens to a call when the connection that brought it is lost.
    fn abandoned(&self) -> OnDisconnect;

    /// How a question reaches the client.
    fn asking(&self) -> InputMode;

    /// What the client of a call can do with a task.
    ///
    /// # Errors
    ///
    /// When it asks for one in a way that cannot be understood.
    fn holding(&self, call: &Call) -> Result<ClientTaskSupport, ProtocolError>;

    /// In which ways the client of a call wants it to be answered, where it says so.
    ///
    /// # Errors
    ///
    /// When it says so in a way that cannot be understood.
    fn response_modes(&self, _call: &Call) -> Result<Option<ResponseModes>, ProtocolError> {
        Ok(None)
    }

    /// From after which number a call about a task wants to have what that has emitted, if it does.
    ///
    /// # Errors
    ///
    /// When it names something that is no such number.
    fn emitted_after(&self, _call: &Call) -> Result<Option<u64>, ProtocolError> {
        Ok(None)
    }

    /// What its tasks are noted as having been asked for in, if their content is sent as it grows.
    fn streaming_dialect(&self) -> &'static str {
        self.dialect()
    }

    /// Whether a task that was asked for in a dialect sends its content as it grows.
    fn streams(&self, _dialect: &str) -> bool {
        false
    }

    /// Whether the request declares that it reads what tasks have emitted.
    fn reads_partials(&self, _call: &Call) -> bool {
        false
    }

    /// How a caller that cannot hold a task is refused where there is no other answer.
    fn task_required(&self, capability: RawJson) -> ProtocolError;

    /// What its tasks are noted as having been asked for in.
    fn dialect(&self) -> &'static str;

    /// Whether tasks that were asked for in a dialect are there for callers of this one.
    fn sees(&self, dialect: &str) -> bool;

    /// Whether a task that is cancelled is over when that is answered.
    fn cancels_at_once(&self) -> bool;

    /// Whether this revision has words for a question.
    fn has_words_for(&self, request: &InputRequest) -> bool;

    /// Whether clients hear of the progress of tasks.
    fn tells_progress_of_tasks(&self) -> bool {
        false
    }

    /// Whether the client answers a question of this kind with a task of its own, if it is asked to.
    fn hosts(&self, _call: &Call, _request: &InputRequest) -> bool {
        false
    }

    /// Whether several messages may come as one array.
    fn takes_batches(&self) -> bool {
        false
    }

    /// Whether HTTP headers must repeat parts of the body.
    fn mirrors_headers(&self) -> bool {
        false
    }

    /// How streams of server-sent events are numbered, if they are.
    fn numbering(&self) -> EventIdMode {
        EventIdMode::None
    }

    /// Writes one message of a run.
    fn encode(&self, call: &Call, message: Message, profile: &Profile, out: &mut Vec<u8>) -> Frame;

    /// Writes what follows the end of a call on a pipe; `false` if nothing does.
    fn epilogue(&self, _call: &Call, _out: &mut Vec<u8>) -> bool {
        false
    }

    /// Writes a change for a client that hears of it outside of any call.
    fn encode_change(&self, change: &Change, out: &mut Vec<u8>);

    /// Writes a refusal and says which HTTP status goes with it. Without an id the member is left
    /// out: it could not be read.
    fn refuse(
        &self,
        id: Option<&str>,
        fault: &ProtocolError,
        profile: &Profile,
        out: &mut Vec<u8>,
    ) -> u16;
}

/// What becomes of a call whose connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way")]
pub enum OnDisconnect {
    /// It is cancelled: closing the stream is how clients cancel.
    Cancel,
    /// It goes on: the client may come back for the answer.
    Continue,
}

/// How a question reaches the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third way")]
pub enum InputMode {
    /// As a request on the call's stream, while the call waits.
    Stream,
    /// As the end of the call, which the client makes again with its answers.
    RoundTrip,
}

/// How the events of a stream are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the three ways the revisions know")]
pub enum EventIdMode {
    /// Not at all: a broken stream is lost.
    None,
    /// Every event has an id from which a client can resume.
    Ids,
    /// As [`EventIdMode::Ids`], and the stream begins with an empty event that has one.
    Primed,
}

/// What [`Era::encode`] wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "transports must know them all")]
pub enum Frame {
    /// A message on the way; more follow.
    Message,
    /// The response. Its HTTP status counts if nothing was sent before it.
    End {
        /// The HTTP status.
        status: u16,
    },
    /// Nothing was written: the connection is to be closed, and the stream to be resumed.
    Detach {
        /// When the client should come back.
        retry: Duration,
    },
    /// Nothing: this revision has no words for it.
    Silent,
}

/// Which generations a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a switch for each of the two")]
pub struct VersionSet {
    /// 2026-07-28.
    pub modern: bool,
    /// 2024-11-05 to 2025-11-25.
    pub legacy: bool,
}

impl Default for VersionSet {
    fn default() -> Self {
        Self { modern: true, legacy: true }
    }
}

/// Makes a call of a message that was kept, under the rules it came in. `open_session` makes the
/// session of a revision that has one.
pub(crate) fn restore(
    version: &str,
    message: &ByteString,
    arrival: MessageContext<'_>,
    open_session: impl FnOnce(&'static dyn Era) -> Arc<Session>,
) -> Result<Arc<Call>, ProtocolError> {
    let request = Request::again(message)
        .ok_or_else(|| ProtocolError::internal("a call that was kept cannot be read any more"))?;
    match legacy::revision(version) {
        Some(legacy) => legacy.decode(&request, arrival, open_session(legacy), |_| false),
        None => modern::MODERN.decode(&request, arrival, |_| false),
    }
}

/// The capabilities that a client has to declare to hold tasks.
pub fn tasks_capability() -> RawJson {
    modern::tasks_capability()
}

/// Every dialect that a task can be noted as having been asked for in.
pub const DIALECTS: [&str; 3] = [modern::DIALECT, legacy::DIALECT, legacy::STREAMING];

/// Our own extension, by which callers list their tasks of every protocol version.
pub const TASK_LIST: &str = "dev.outlive/task-list";

/// The method of [`TASK_LIST`]. Every protocol version has it.
pub const LIST_ALL_TASKS: &str = "dev.outlive/tasks/list";

/// A task in the list of [`TASK_LIST`].
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct ListedTask {
    /// Name of its tool.
    pub tool: String,
    /// Dialect that it was asked for in.
    pub dialect: String,
    /// The task.
    pub view: TaskView,
}

/// Writes a page of the list of [`TASK_LIST`]: the same for callers of every protocol version.
///
/// # Errors
///
/// When the page cannot be written as JSON.
pub fn task_list(tasks: &[ListedTask], next: Option<&str>) -> Result<RawJson, serde_json::Error> {
    modern::task_list(tasks, next)
}

/// What the client of a call would have to declare to be asked this; `None` if it can be asked.
pub fn missing_for(call: &Call, request: &InputRequest) -> Option<RawJson> {
    input::missing(call, request)
}

/// What stands at the head of every modern result.
pub(crate) fn modern_stamp(info: &Implementation, with_identity: bool) -> Box<str> {
    modern::stamp(info, with_identity)
}

/// Writes a refusal of a message whose era cannot be told.
pub(crate) fn refuse_unread(id: Option<&str>, fault: &ProtocolError, out: &mut Vec<u8>) -> u16 {
    let (code, data) = error::common(fault);
    error::write(id, code, fault, data, out);
    400
}

/// Checks the version header of a request that has no body to tell its era: GET and DELETE.
///
/// # Errors
///
/// When the header is there and names a protocol version that is not served.
pub fn check_version_header(
    session: &Session,
    headers: &http::HeaderMap,
) -> Result<(), ProtocolError> {
    legacy::check_version_header(session.era(), headers)
}

/// Whether the headers of a request put it under modern rules.
pub fn headers_look_modern(headers: &http::HeaderMap) -> bool {
    select::headers_look_modern(headers)
}

/// The value of a header that repeats an argument, decoded; `None` if it is absent.
///
/// # Errors
///
/// When it is there twice, is not valid Base64, or is no text.
pub fn mirrored_header(
    headers: &http::HeaderMap,
    name: &http::HeaderName,
) -> Result<Option<String>, ProtocolError> {
    let Some(value) = modern::headers::single(headers, name)? else { return Ok(None) };
    let decoded = modern::headers::decode(value, name)?;
    match String::from_utf8(decoded.into_owned()) {
        Ok(text) => Ok(Some(text)),
        Err(_) => {
            Err(ProtocolError::HeaderMismatch(format!("the {name} header is not text").into()))
        }
    }
}

/// A session for one request of a server that keeps none: nothing is remembered in it.
pub(crate) fn ephemeral_session(
    era: &'static dyn Era,
    arrival: &MessageContext<'_>,
    bus: &ChangeBus,
) -> Session {
    Session::new(
        era,
        arrival.principal.clone(),
        None,
        "{}".into(),
        bus.subscribe(ChangeFilter::default()),
    )
}
