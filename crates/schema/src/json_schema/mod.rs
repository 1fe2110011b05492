//! JSON Schemas of tool inputs and outputs.
//!
//! A [`Schema`] is built from a Rust type or from hand-written JSON when a tool is registered. It
//! keeps the text for clients, and validates arguments and results.
//!
//! Validation has two stages. First, a compiled [`tree`] is walked while the text is parsed,
//! without allocation. It covers the keywords of most tools, and its result is "valid" or
//! "undecided". Then, only for undecided texts, a validator decides and reports the reason:
//! [`validate`] for the keywords that `schemars` writes, [`full`] with the feature `json-schema`
//! for all others. A schema that neither covers is rejected at registration. For flat types the
//! walk is skipped if [`evidence`] shows that deserialization rejects the same values.

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
