//! [`PeopleError`]: why a function for people did nothing.

use std::fmt;

use outlive_tasks::store::StoreError;

/// The reason why a function for people did nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeopleError {
    /// The object does not exist, or the visitor may not see it. The two are indistinguishable.
    NotFound,
    /// The visitor sees the object, but may not do this. The text names the reason and the remedy.
    Forbidden(&'static str),
    /// Values of the visitor are invalid, by field.
    Invalid(Vec<FieldError>),
    /// The server rejected the call of a rerun. The text is the one that a client gets.
    Rejected(String),
    /// The store is unavailable, or a caller has used up its bytes in the store.
    Store(StoreError),
}

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// Name of the field; empty if the error belongs to no single field.
    pub field: String,
    /// A predicate whose subject is the field, as in "must be a whole number".
    pub message: String,
}

impl FieldError {
    /// Creates the error of a field.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl PeopleError {
    /// Creates the error of one field.
    pub(super) fn field(field: &str, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError::new(field, message)])
    }
}

impl From<StoreError> for PeopleError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.field.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "`{}` {}", self.field, self.message),
        }
    }
}

impl fmt::Display for PeopleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Forbidden(reason) => f.write_str(reason),
            Self::Invalid(errors) => {
                for (index, error) in errors.iter().enumerate() {
                    let separator = if index > 0 { "; " } else { "" };
                    write!(f, "{separator}{error}")?;
                }
                Ok(())
            }
            Self::Rejected(reason) => write!(f, "the server rejected the call: {reason}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for PeopleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(source) => Some(source),
            _ => None,
        }
    }
}
