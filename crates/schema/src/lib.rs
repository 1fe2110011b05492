//! JSON Schema, elicitation forms and URI templates for the crate `outlive`; exempt from semver.
//!
//! Pure functions over text and JSON: no async, no clock, no I/O. Nothing is ever fetched.
//!
//! - [`Schema`]: the schema of a tool's input or output. Checks arguments and results.
//! - [`header_params`]: the arguments that clients repeat as `Mcp-Param-*` headers.
//! - [`fields`]: the fields of a schema, as a person fills them in.
//! - [`forms`]: forms from Rust types, and the check of what a user has filled in.
//! - [`uri_template`]: RFC 6570, in both directions.

mod field_order;
pub mod fields;
pub mod forms;
mod json_schema;
pub mod uri_template;

pub use json_schema::{HeaderKind, HeaderParam, Schema, SchemaError, Violation, header_params};
