//! Functions for people who act outside an MCP client, such as on a web page.
//!
//! - [`AnswerLinks`]: addresses at which a person responds to one input request.

mod links;

pub use links::{AnswerError, AnswerLinks, OpenLink};
