//! Forms: what a user can be asked to fill in, made from a type.
//!
//! The protocol allows a small part of JSON Schema, flat, so that every client can draw it. The
//! derive checks the fields when the type is compiled; `convert` turns what `schemars` writes
//! into the allowed part, and says which field cannot be; `check` holds answers
//! against it.
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
