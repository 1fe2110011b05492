//! Errors of types that cannot be forms.

use std::fmt;

/// Why a type cannot be a form. The text names the field and says what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormError(pub(super) String);

impl fmt::Display for FormError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormError {}
