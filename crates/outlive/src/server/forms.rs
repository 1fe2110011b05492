//! Forms for elicitation. Derive [`Form`](macro@crate::Form) for a type.

pub use outlive_schema::forms::{Choice, Form, FormError, FormField};
