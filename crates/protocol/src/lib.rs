//! The protocol core of Outlive: eras, calls and runs. Async without a runtime; no sockets, no SQL.
//!
//! ```text
//! bytes ─▶ Endpoint::accept ─▶ Call ─▶ Service ─▶ Run ──Message*──▶ ServerCodec::encode ─▶ bytes
//! ```
//!
//! - [`Endpoint`]: parses a message, selects its era, builds a [`Call`] and starts a [`Run`].
//! - [`Run`]: the execution of a call. Its owner polls it and can move it.
//! - [`VersionRules`]: the protocol versions as data.
//! - [`era`]: the codecs of the two eras. Pure: no async, clock or I/O.
//! - [`Service`]: the interface that a server implements for the transports.
//! - [`Session`], [`ChangeBus`]: the state of a legacy client, and the delivery of changes.
//! - [`SessionStore`]: the storage that replicas share for sessions.
//! - [`text`]: makes text of a peer safe to display.

mod bus;
mod call;
mod call_end;
mod cancel_reason;
mod clock;
mod endpoint;
pub mod era;
mod error;
mod frame;
mod gauge;
mod in_flight;
mod incoming;
mod limits;
mod message;
mod message_context;
mod outbox;
mod outcome;
mod pending_requests;
mod principal;
mod profile;
mod progress;
mod receipt;
mod relayed;
mod run;
mod scopes;
mod seal;
mod segments;
mod service;
mod session;
mod session_store;
mod shared_session;
mod stored_call;
mod task;
mod task_request;
pub mod text;
mod version;

pub use bus::{ChangeBus, ChangeFeed, ChangeFilter, Lists, Mark, SubscriptionWatcher};
pub use call::{Call, CallWatcher};
pub use call_end::CallEnd;
pub use cancel_reason::CancelReason;
pub use clock::Clock;
pub use endpoint::{Accepted, Endpoint, ErrorReply};
pub use error::ProtocolError;
pub use frame::Frame;
pub use gauge::{Gauge, GaugeGuard};
pub use in_flight::{InFlight, InFlightGuard, RunningCall};
pub use incoming::{Incoming, IncomingKind};
pub use limits::Limits;
pub use message::{Change, Message, Notify};
pub use message_context::MessageContext;
pub use outbox::Outbox;
pub use outcome::{InputRequired, MethodResult, Outcome, Page, ServerDescription, TaskCapability};
pub use pending_requests::{ClientReply, PendingRequest, PendingRequests};
pub use principal::Principal;
pub use profile::Profile;
pub use progress::Progress;
pub use receipt::Receipt;
pub use relayed::{RelayedKind, RelayedResult, RelayedResultError};
pub use run::{CallFuture, Run, catch_panic};
pub use scopes::Scopes;
pub use seal::{Opened, Seal};
pub use segments::{FinalSegments, PartialResponse, ResponseModes, SegmentPage, Segments};
pub use service::{ClientNotification, CompletionOutcome, ExternalEvents, Service, SessionEvents};
pub use session::Session;
pub use session_store::{MisroutedReply, SessionStore, SessionStoreError, SessionStoreFuture};
pub use shared_session::SharedSession;
pub use stored_call::{StoredCall, StoredSession};
pub use task::{TaskState, TaskView, rfc3339};
pub use task_request::{ClientTaskSupport, TaskRequest};
pub use version::{
    Era, EventIdMode, InputMode, InputSupport, OnDisconnect, TASK_ORIGINS, TaskDialect, VERSIONS,
    VersionRules, VersionSet,
};
