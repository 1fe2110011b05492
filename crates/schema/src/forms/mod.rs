//! Elicitation forms that are generated from Rust types.
//!
//! MCP allows a flat subset of JSON Schema in forms, so that every client can render it. The derive
//! macro checks the fields at compile time, `convert` converts the schema of `schemars` to the
//! subset, and `check` validates input responses.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation>

mod check;
mod convert;
mod error;
mod form;

#[cfg(test)]
mod tests;

pub use check::{check, check_field};
pub use error::FormError;
pub use form::{Choice, Form, FormField, schema_of};
