//! JSON Schemas of tools: what goes in and what comes out.
//!
//! A [`Schema`] is made from a Rust type or from hand-written JSON when a tool is registered. It
//! keeps the text that clients are shown, and it checks arguments and results against it.
//!
//! The one thing to know: there are two checkers. A compiled [`tree`] is walked while the text is
//! read and allocates nothing; it covers the keywords that nearly all tools use, and it only ever
//! says "fits" or "in doubt". The `jsonschema` crate settles doubts and writes the messages, so the
//! verdict is always its own. For flat types even the walk is left out, if [`evidence`] shows that
//! deserializing refuses what the schema refuses.

mod alternatives;
mod compile;
mod error;
mod evidence;
mod glance;
mod header_params;
mod limits;
mod locate;
mod message;
mod options;
mod quote;
mod schema;
mod subschemas;
mod tree;
mod violation;
mod walk;

#[cfg(test)]
mod tests;

pub use error::SchemaError;
pub use header_params::{HeaderKind, HeaderParam, header_params};
pub use schema::Schema;
pub use violation::Violation;
