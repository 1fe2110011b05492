//! Extractors: the arguments of handlers, made from the call by type.
//!
//! - `cx`: [`Cx`](cx::Cx), the context of a call; `extract`: arguments by type; `handler`: async
//!   functions as handlers; `response`: return values.

pub(crate) mod cx;
pub(crate) mod extractor;
pub(crate) mod handler;
pub(crate) mod response;

pub use extractor::{Extract, HandlerRequirements, RawParams, Rejection};
pub use handler::Handler;
