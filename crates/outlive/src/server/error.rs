//! What handlers fail with.
//!
//! A tool that ran and failed is a *result* that its model can read; a request that we refuse is a
//! [`Fault`]. Handlers return this type for both, and `?` on a foreign error makes the first.

use std::{any::Any, fmt};

use outlive_protocol::Fault;
use outlive_wire::ErrorObject;

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A handler's failure.
///
/// Not itself a `std::error::Error`, so that every such error turns into it by `?`.
pub struct Error(Box<Kind>);

enum Kind {
    /// The work failed; the text is for the caller.
    Failed(String),
    /// There is no such thing.
    NotFound,
    /// The request is refused.
    Refused(Fault),
}

impl Error {
    /// The work failed. Of a tool, the model reads this text: say what to do differently.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Kind::Failed(message.into())))
    }

    /// The resource or prompt that was asked for does not exist.
    pub fn not_found() -> Self {
        Self(Box::new(Kind::NotFound))
    }

    /// The parameters do not fit. Also of a tool this is an error of the protocol, not a result.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self(Box::new(Kind::Refused(Fault::InvalidParams(message.into().into()))))
    }

    /// A refusal with a code of your own, outside of -32768 to -32000, which the protocol reserves.
    pub fn with_code(code: i32, message: impl Into<String>) -> Self {
        if (-32768..=-32000).contains(&code) {
            let cause = format_args!("{code} is a reserved code: {}", message.into());
            return Self(Box::new(Kind::Refused(Fault::internal(cause))));
        }
        let error = ErrorObject { code, message: message.into(), data: None };
        Self(Box::new(Kind::Refused(Fault::Custom(error))))
    }

    /// As a refusal, where a failure is nothing that the caller can read as a result.
    pub(super) fn into_fault(self, not_found: impl FnOnce() -> Fault) -> Fault {
        match *self.0 {
            Kind::Failed(cause) => Fault::internal(cause),
            Kind::NotFound => not_found(),
            Kind::Refused(fault) => fault,
        }
    }

    /// As the text of a tool's failed result, or as a refusal.
    pub(super) fn into_tool_error(self) -> std::result::Result<String, Fault> {
        match *self.0 {
            Kind::Failed(message) => Ok(message),
            Kind::NotFound => Ok("not found".into()),
            Kind::Refused(fault) => Err(fault),
        }
    }
}

/// Any error becomes a failure with its text and those of its causes; a [`Fault`] stays a refusal.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        if let Some(fault) = (&error as &dyn Any).downcast_ref::<Fault>() {
            return Self(Box::new(Kind::Refused(fault.clone())));
        }
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self::new(message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::Failed(message) => f.write_str(message),
            Kind::NotFound => f.write_str("not found"),
            Kind::Refused(fault) => fault.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}
