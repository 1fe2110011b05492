//! JSON Schema, elicitation forms and URI templates for the crate `outlive`; exempt from semver.
//!
//! Pure functions over text and JSON: no async, clock, network or other I/O.
//!
//! - [`Schema`]: the schema of a tool's input or output. Validates arguments and results.
//! - [`header_params`]: the arguments that clients repeat as `Mcp-Param-*` headers.
//! - [`fields`]: the fields of a schema, for user interfaces.
//! - [`forms`]: forms from Rust types, and the validation of their input responses.
//! - [`uri_template`]: RFC 6570, in both directions.

mod field_order;
pub mod fields;
pub mod forms;
mod json_schema;
pub mod uri_template;

pub use json_schema::{HeaderKind, HeaderParam, Schema, SchemaError, Violation, header_params};
