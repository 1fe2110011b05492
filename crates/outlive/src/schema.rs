//! Fields of a schema for user interfaces: arguments of a tool and fields of a form.

pub use outlive_schema::fields::{Field, FieldChoice, FieldKind, fields, is_open, plain_text};
