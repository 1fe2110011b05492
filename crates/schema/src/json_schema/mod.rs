//! JSON Schemas of tools: what goes in and what comes out.
//!
//! A [`Schema`] is made from a Rust type or from hand-written JSON when a tool is registered. It
//! keeps the text that clients are shown, and it checks arguments and results against it.
//!
//! The one thing to know: a check has two stages. A compiled [`tree`] is walked while the text is read
//! and allocates nothing; it covers the keywords that nearly all tools use, and it only ever says "fits"
//! or "in doubt". A validator settles doubts and finds the reasons: [`validate`] for the keywords that
//! `schemars` writes, [`full`] with the feature `json-schema` for all others. A schema that neither
//! covers is refused when it is registered. For flat types even the walk is left out, if [`evidence`]
//! shows that deserializing refuses what the schema refuses.

mod alternatives;
mod compile;
mod dialect;
mod equality;
mod error;
mod evidence;
#[cfg_attr(not(feature = "json-schema"), allow(dead_code, reason = "`full` uses the rest"))]
mod failure;
#[cfg_attr(not(feature = "json-schema"), path = "no_full.rs")]
mod full;
mod header_params;
mod limits;
mod locate;
mod message;
mod number;
mod quote;
mod report;
mod schema;
mod schema_text;
mod subschemas;
#[cfg_attr(feature = "json-schema", allow(dead_code, reason = "`no_full` uses the rest"))]
mod supported;
mod tree;
mod validate;
mod violation;
mod walk;

#[cfg(test)]
mod tests;

pub use error::SchemaError;
pub use header_params::{HeaderKind, HeaderParam, header_params};
pub use schema::Schema;
pub use violation::Violation;
