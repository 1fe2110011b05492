//! The heart of Outlive: eras, calls, runs. Async, but without a runtime; no sockets, no SQL.
//!
//! ```text
//! bytes ─▶ Endpoint::accept ─▶ Call ─▶ Service ─▶ Run ──Message*──▶ Era::encode ─▶ bytes
//! ```
//!
//! - [`Endpoint`]: reads a message, chooses its era, makes a [`Call`] of it and starts a [`Run`].
//! - [`Run`]: a call at work. Whoever owns it polls it; moving a call is moving a box.
//! - [`era`]: the two generations of the protocol behind one wall. Pure: no async, no clock, no I/O.
//! - [`Service`]: what a server is to the transports.
//! - [`Session`], [`Bus`]: what a legacy handshake said, and who hears of changes.
//! - [`SessionKeeper`]: where sessions are kept for all replicas of a server.
//! - [`text`]: text of a peer, made safe to show to people.

mod asked;
mod bus;
mod call;
mod clock;
mod endpoint;
pub mod era;
mod fault;
mod gauge;
mod in_flight;
mod incoming;
mod keeper;
mod limits;
mod message;
mod outcome;
mod partial;
mod port;
mod principal;
mod run;
mod scopes;
mod seal;
mod service;
mod session;
mod stored;
mod task;
pub mod text;
mod watch;

pub use asked::{Asked, Pending, Reply};
pub use bus::{Bus, Feed, Lists, Mark, Wants};
pub use call::Call;
pub use clock::Clock;
pub use endpoint::{Accepted, Arrival, Endpoint, Refusal};
pub use fault::Fault;
pub use gauge::{Entered, Gauge};
pub use in_flight::{Held, InFlight};
pub use incoming::{Incoming, IncomingKind};
pub use keeper::{Keeping, Portable, SessionKeeper, Stray, Unavailable};
pub use limits::Limits;
pub use message::{Change, Message, Notify, Progress};
pub use outcome::{Answer, Identity, InputRequired, OffersTasks, Outcome, Page};
pub use partial::{Blocks, Emitted, Partial, ResponseModes, Rest};
pub use port::Port;
pub use principal::Principal;
pub use run::{Run, Work, contained};
pub use scopes::Scopes;
pub use seal::{Opened, Seal};
pub use service::{Completed, Notice, Profile, Service};
pub use session::Session;
pub use stored::{StoredCall, StoredSession};
pub use task::{Holding, TaskState, TaskView, rfc3339};
pub use watch::{CallEnd, CallWatcher};
