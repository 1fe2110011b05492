//! Errors for types that cannot be forms.

use std::fmt;

/// The reason why a type cannot be a form. The text names the field and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormError(pub(super) String);

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormError {}
