//! Extractors: the arguments of handlers, extracted from the call by type.
//!
//! - `cx`: [`Cx`](cx::Cx), the context of a call; `extractor`: the trait [`Extract`]; `by_type`:
//!   support for the macros; `handler`: async functions as handlers; `response`: return values.

pub(crate) mod by_type;
pub(crate) mod cx;
pub(crate) mod extractor;
pub(crate) mod handler;
pub(crate) mod response;

pub use extractor::{Extract, HandlerRequirements, RawParams, Rejection};
pub use handler::Handler;
