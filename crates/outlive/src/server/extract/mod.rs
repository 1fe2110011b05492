//! Extractors: the arguments of handlers, made from the call by type.
//!
//! - `cx`: [`Cx`](cx::Cx), the context of a call; `extractor`: arguments by type; `by_type`: what a
//!   macro leaves to the compiler; `handler`: async functions as handlers; `response`: return values.

pub(crate) mod by_type;
pub(crate) mod cx;
pub(crate) mod extractor;
pub(crate) mod handler;
pub(crate) mod response;

pub use extractor::{Extract, HandlerRequirements, RawParams, Rejection};
pub use handler::Handler;
