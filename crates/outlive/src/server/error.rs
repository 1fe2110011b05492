//! The error type of handlers.
//!
//! A tool that runs and fails returns a *result* that the model can read. An invalid request gets a
//! [`ProtocolError`]. Handlers return this type for both; `?` on a foreign error produces a tool
//! error.

use std::{error::Error as StdError, fmt, time::Duration};

use outlive_protocol::ProtocolError;
use outlive_tasks::StepFailure;
use outlive_wire::{CallToolResult, ErrorObject, RawJson, code};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::server::durable_error::DurableError;

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The failure of a handler.
///
/// `?` converts strings, `anyhow::Error` and every `std::error::Error` into this type. The type
/// does not implement `std::error::Error` itself, because that would conflict with the conversion;
/// [`Error::into_std`] returns a type that does. With the feature `anyhow`, `?` also converts this
/// type into an `anyhow::Error`.
///
/// ```
/// use outlive::server::{Error, Result};
///
/// fn port(text: &str) -> Result<u16> {
///     let port: u16 = text.parse()?; // a std error
///     if port < 1024 {
///         Err("use port 1024 or higher")?; // a text
///     }
///     Ok(port)
/// }
///
/// assert_eq!(port("80").unwrap_err().to_string(), "use port 1024 or higher");
///
/// // A function that returns std errors.
/// fn start() -> std::result::Result<u16, Box<dyn std::error::Error>> {
///     Ok(port("http").map_err(Error::into_std)?)
/// }
/// assert_eq!(start().unwrap_err().to_string(), "invalid digit found in string");
/// ```
pub struct Error {
    kind: Box<Kind>,
    permanent: bool,
}

#[derive(Clone)]
enum Kind {
    /// The handler failed. Message and data are for the client.
    Failed { message: String, data: Option<RawJson> },
    /// The requested item does not exist.
    NotFound,
    /// The request is invalid or not allowed.
    Refused(ProtocolError),
    /// A step, an input request or a timer has no value.
    Durable(DurableError),
}

impl Error {
    fn of(kind: Kind) -> Self {
        Self { kind: Box::new(kind), permanent: false }
    }

    /// Returns a failure. The model reads the message of a failed tool, so say what to do
    /// differently.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(Kind::Failed { message: message.into(), data: None })
    }

    /// Returns the error for a resource or prompt that does not exist.
    pub fn not_found() -> Self {
        Self::of(Kind::NotFound)
    }

    /// Returns an invalid-params protocol error. For a tool too, this is not a tool error.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::of(Kind::Refused(ProtocolError::InvalidParams(message.into().into())))
    }

    /// Returns a protocol error with a custom code. Codes from -32768 to -32000 are reserved; with
    /// one of them, the client receives an internal error.
    pub fn with_code(code: i32, message: impl Into<String>) -> Self {
        if (-32768..=-32000).contains(&code) {
            let cause = format_args!("{code} is a reserved code: {}", message.into());
            return Self::of(Kind::Refused(ProtocolError::internal(cause)));
        }
        let error = ErrorObject { code, message: message.into(), data: None };
        Self::of(Kind::Refused(ProtocolError::Custom(error)))
    }

    /// Adds structured data for programs: `error.data` of a protocol error, or the structured
    /// content of a tool error. A step does not record the data.
    ///
    /// Data that cannot be serialized as JSON is dropped and logged. Errors of prompts and
    /// resources carry data only if they have a code.
    ///
    /// ```
    /// use outlive::server::Error;
    /// use serde_json::json;
    ///
    /// let sold_out = Error::with_code(77, "sold out").data(json!({"article": "lamp", "again": "2027-01-01"}));
    /// # let _ = sold_out;
    /// ```
    #[must_use]
    pub fn data(mut self, data: impl Serialize) -> Self {
        let json = match to_raw_value(&data) {
            Ok(json) => json,
            Err(error) => {
                tracing::error!(%error, "error data cannot be serialized as JSON; dropped");
                return self;
            }
        };
        match &mut *self.kind {
            Kind::Failed { data, .. } => *data = Some(json),
            Kind::Refused(ProtocolError::Custom(error)) => error.data = Some(json),
            Kind::Refused(ProtocolError::InvalidParams(message)) => {
                let message = message.clone().into_owned();
                let error = ErrorObject { code: code::INVALID_PARAMS, message, data: Some(json) };
                *self.kind = Kind::Refused(ProtocolError::Custom(error));
            }
            _ => {}
        }
        self
    }

    /// Marks a failure that a retry would not change. A step records this failure and is not
    /// executed again, in this run or a later one.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.permanent = true;
        self
    }

    /// Returns whether the failure is permanent; see [`Error::permanent`].
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// Returns the [`DurableError`], if a step, an input request or a timer caused this error.
    pub fn durable_error(&self) -> Option<&DurableError> {
        match &*self.kind {
            Kind::Durable(error) => Some(error),
            _ => None,
        }
    }

    /// Returns whether the user declined an elicitation.
    pub fn is_declined(&self) -> bool {
        matches!(self.durable_error(), Some(DurableError::Declined { .. }))
    }

    /// Returns whether the task was cancelled. No further step of the task starts.
    pub fn is_task_cancelled(&self) -> bool {
        matches!(self.durable_error(), Some(DurableError::TaskCancelled { .. }))
    }

    /// Returns whether the user cancelled an elicitation, neither accepting nor declining it.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.durable_error(), Some(DurableError::Cancelled { .. }))
    }

    /// Converts the error into a `std::error::Error`, for functions and types that require one.
    ///
    /// A custom error type that wraps a [`HandlerError`] as its source preserves the kind of the
    /// error:
    ///
    /// ```
    /// use outlive::server::{Durable, Error, HandlerError, Result};
    ///
    /// #[derive(Debug)]
    /// struct OrderError(HandlerError);
    ///
    /// impl std::fmt::Display for OrderError {
    ///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    ///         f.write_str("the order failed")
    ///     }
    /// }
    ///
    /// impl std::error::Error for OrderError {
    ///     fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
    ///         Some(&self.0)
    ///     }
    /// }
    ///
    /// impl From<Error> for OrderError {
    ///     fn from(error: Error) -> Self {
    ///         Self(error.into_std())
    ///     }
    /// }
    ///
    /// async fn reserve(cx: &Durable) -> Result<u32, OrderError> {
    ///     Ok(cx.step("reserve", async || Ok(7)).await?)
    /// }
    /// # let _ = reserve;
    /// let error = Error::from(OrderError::from(Error::new("sold out").permanent()));
    /// assert_eq!(error.to_string(), "the order failed: sold out");
    /// assert!(error.is_permanent());
    /// ```
    pub fn into_std(self) -> HandlerError {
        HandlerError(self)
    }

    /// Converts `error` and its chain of sources.
    fn from_chain(error: &(dyn StdError + 'static)) -> Self {
        if let Some(error) = error.downcast_ref::<ProtocolError>() {
            return Self::of(Kind::Refused(error.clone()));
        }
        if let Some(error) = error.downcast_ref::<DurableError>() {
            return Self::of(Kind::Durable(error.clone()));
        }
        if let Some(error) = error.downcast_ref::<HandlerError>() {
            return error.to_error();
        }
        let mut message = error.to_string();
        let mut wrapped = None;
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            wrapped = wrapped.or(error.downcast_ref::<HandlerError>());
            cause = error.source();
        }
        match wrapped.map(HandlerError::to_error) {
            // A plain failure takes the message of the whole chain; other kinds keep their own.
            Some(Self { kind, permanent }) => match *kind {
                Kind::Failed { data, .. } => {
                    Self { permanent, ..Self::of(Kind::Failed { message, data }) }
                }
                kind => Self { permanent, ..Self::of(kind) },
            },
            None => Self::new(message),
        }
    }

    /// Returns the failure to record in the journal, if it is permanent.
    pub(crate) fn to_failure(&self) -> Option<StepFailure> {
        let code = match &*self.kind {
            Kind::Refused(ProtocolError::Custom(error)) => Some(error.code),
            Kind::Refused(ProtocolError::InvalidParams(_)) => Some(code::INVALID_PARAMS),
            _ => None,
        };
        self.permanent.then(|| StepFailure::new(self.to_string()).code(code))
    }

    /// Restores a failure that a step recorded.
    pub(crate) fn from_failure(failure: StepFailure) -> Self {
        let StepFailure { message, code, .. } = failure;
        let error = match code {
            None => Self::new(message),
            Some(code::INVALID_PARAMS) => Self::invalid_params(message),
            Some(code) => Self::with_code(code, message),
        };
        error.permanent()
    }

    /// Converts the error into a protocol error, for calls that cannot return a tool error.
    pub(crate) fn into_fault(self, not_found: impl FnOnce() -> ProtocolError) -> ProtocolError {
        match *self.kind {
            Kind::Failed { message, .. } => ProtocolError::internal(message),
            Kind::NotFound => not_found(),
            Kind::Refused(fault) => fault,
            Kind::Durable(error) => durable_fault(error),
        }
    }

    /// Converts the error into a tool error, or into a protocol error if it is one.
    pub(crate) fn into_tool_error(self) -> std::result::Result<CallToolResult, ProtocolError> {
        let failed = |text: String| Ok(CallToolResult::error(text));
        match *self.kind {
            Kind::Failed { message, data } => {
                Ok(CallToolResult { structured_content: data, ..CallToolResult::error(message) })
            }
            Kind::NotFound => failed("not found".into()),
            Kind::Refused(fault) => Err(fault),
            Kind::Durable(DurableError::MissingCapability { required, .. }) => {
                Err(ProtocolError::MissingCapability { required })
            }
            Kind::Durable(DurableError::NoCapacity { capacity }) => Err(over_limit(capacity)),
            Kind::Durable(error) => failed(error.to_string()),
        }
    }
}

/// Delay after which a client should retry a call that got no permit.
const RETRY_CAPACITY: Duration = Duration::from_secs(1);

fn over_limit(limit: String) -> ProtocolError {
    ProtocolError::OverLimit { limit: limit.into(), retry_after: RETRY_CAPACITY }
}

/// Converts a durable error. Errors caused by the user or client are sent to the client; errors of
/// the handler are only logged.
fn durable_fault(error: DurableError) -> ProtocolError {
    /// Code that the specification suggests if the user rejects a request.
    const REJECTED: i32 = -1;
    match error {
        DurableError::MissingCapability { required, .. } => {
            ProtocolError::MissingCapability { required }
        }
        DurableError::NoCapacity { capacity } => over_limit(capacity),
        DurableError::Declined { .. }
        | DurableError::Cancelled { .. }
        | DurableError::TimedOut { .. }
        | DurableError::ClientError { .. }
        | DurableError::TooManyRounds { .. }
        | DurableError::InvalidResponse { .. } => ProtocolError::Custom(ErrorObject {
            code: REJECTED,
            message: error.to_string(),
            data: None,
        }),
        _ => ProtocolError::internal(error),
    }
}

/// Converts an error into a failure with its message and the messages of its sources.
///
/// A [`ProtocolError`] and a [`DurableError`] keep their kind. An error that was converted with
/// [`Error::into_std`] keeps it too, even as a source, so a wrapped [`Error::permanent`] stays
/// permanent.
impl<E> From<E> for Error
where
    E: Into<Box<dyn StdError + Send + Sync>> + 'static,
{
    fn from(error: E) -> Self {
        match behind_anyhow(&error) {
            Some(error) => Self::from_chain(error),
            None => {
                let error: Box<dyn StdError + Send + Sync> = error.into();
                Self::from_chain(&*error)
            }
        }
    }
}

/// Returns the error inside an `anyhow::Error`. Boxing would hide it behind a private type of
/// anyhow.
#[cfg(feature = "anyhow")]
fn behind_anyhow<E: 'static>(error: &E) -> Option<&(dyn StdError + 'static)> {
    (error as &dyn std::any::Any).downcast_ref::<anyhow::Error>().map(AsRef::as_ref)
}

#[cfg(not(feature = "anyhow"))]
fn behind_anyhow<E>(_error: &E) -> Option<&(dyn StdError + 'static)> {
    None
}

#[cfg(feature = "anyhow")]
impl From<Error> for anyhow::Error {
    fn from(error: Error) -> Self {
        Self::new(error.into_std())
    }
}

/// [`Error`] as a `std::error::Error`; see [`Error::into_std`].
///
/// `?` and `into` convert it back into an [`Error`] without loss.
#[derive(Debug)]
pub struct HandlerError(Error);

impl HandlerError {
    /// Returns the wrapped error.
    pub fn as_error(&self) -> &Error {
        &self.0
    }

    fn to_error(&self) -> Error {
        Error { kind: self.0.kind.clone(), permanent: self.0.permanent }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for HandlerError {}

impl From<Error> for HandlerError {
    fn from(error: Error) -> Self {
        error.into_std()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.kind {
            Kind::Failed { message, .. } => f.write_str(message),
            Kind::NotFound => f.write_str("not found"),
            Kind::Refused(fault) => fault.fmt(f),
            Kind::Durable(error) => error.fmt(f),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Error({self})")
    }
}
