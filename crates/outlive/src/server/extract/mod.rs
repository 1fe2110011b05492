//! Layer 3: what handlers take and return.
//!
//! - `cx`: [`Cx`](cx::Cx), the context of a call; `extract`: arguments by type; `handler`: async
//!   functions as handlers; `response`: return values.

pub(crate) mod cx;
pub(crate) mod extractor;
pub(crate) mod handler;
pub(crate) mod response;
