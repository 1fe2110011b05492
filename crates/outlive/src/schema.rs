//! Fields of a schema, as a person fills them in: the arguments of a tool, the fields of a form.

pub use outlive_schema::fields::{Field, FieldChoice, FieldKind, fields, is_open, plain_text};
