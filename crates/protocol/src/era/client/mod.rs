//! The client side of the codecs.
//!
//! The client works with modern semantics: every request carries its own context, and a result is
//! complete, requires input, or is a task. The legacy codec translates.

mod class;
mod codec;
mod declared;
mod mirror;
mod task;
mod write;

pub use class::CapabilityClass;
pub use codec::{ClientCodec, Outgoing, RelayedKind, ResultContext, ResultKind, version_header};
pub use declared::Declared;
pub use mirror::{mirrored_value, name_in};
pub use task::{TaskSnapshot, TaskStatus, read_task};

pub use super::{codecs::client_codec, modern::is_modern_error};

pub(in crate::era) use task::read_nested;
pub(in crate::era) use write::write;
