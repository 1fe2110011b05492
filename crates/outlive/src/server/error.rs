//! The error of handlers.
//!
//! A tool that ran and failed is a *result* that its model can read; an invalid request is a
//! [`ProtocolError`]. Handlers return this type for both, and `?` on a foreign error makes the first.

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
/// `?` converts into it every `std::error::Error`, `anyhow::Error`, and texts. It is not itself a
/// `std::error::Error`, because both cannot hold; [`Error::into_std`] returns one. With the feature
/// `anyhow`, `?` also converts it into an `anyhow::Error`.
///
/// ```
/// use outlive::server::{Error, Result};
///
/// fn port(text: &str) -> Result<u16> {
///     let port: u16 = text.parse()?; // a std error
///     if port < 1024 {
///         Err("take a port from 1024 on")?; // a text
///     }
///     Ok(port)
/// }
///
/// assert_eq!(port("80").unwrap_err().to_string(), "take a port from 1024 on");
///
/// // A function of another library, which knows std errors only.
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
    /// The work failed; the text is for the caller, and so is the data.
    Failed { message: String, data: Option<RawJson> },
    /// There is no such thing.
    NotFound,
    /// The request is refused.
    Refused(ProtocolError),
    /// A step, a question or a timer has no value.
    Durable(DurableError),
}

impl Error {
    fn of(kind: Kind) -> Self {
        Self { kind: Box::new(kind), permanent: false }
    }

    /// The work failed. Of a tool, the model reads this text: say what to do differently.
    pub fn new(message: impl Into<String>) -> Self {
        Self::of(Kind::Failed { message: message.into(), data: None })
    }

    /// The resource or prompt that was asked for does not exist.
    pub fn not_found() -> Self {
        Self::of(Kind::NotFound)
    }

    /// The parameters do not fit. Also of a tool this is an error of the protocol, not a result.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::of(Kind::Refused(ProtocolError::InvalidParams(message.into().into())))
    }

    /// A refusal with a code of your own, outside of -32768 to -32000, which the protocol reserves.
    pub fn with_code(code: i32, message: impl Into<String>) -> Self {
        if (-32768..=-32000).contains(&code) {
            let cause = format_args!("{code} is a reserved code: {}", message.into());
            return Self::of(Kind::Refused(ProtocolError::internal(cause)));
        }
        let error = ErrorObject { code, message: message.into(), data: None };
        Self::of(Kind::Refused(ProtocolError::Custom(error)))
    }

    /// Adds data for programs: `error.data` of a protocol error, the structured content of a tool that
    /// failed. A step does not record it.
    ///
    /// Data that cannot be written as JSON is left out, and the log says so. The errors of prompts and
    /// resources have none, unless they have a code.
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
                tracing::error!(%error, "the data of an error cannot be written as JSON");
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

    /// Marks a failure that trying again would not change. A step that fails with it is not tried
    /// again, in this run or any other: its failure is recorded.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.permanent = true;
        self
    }

    /// Whether trying again would not change it.
    pub fn is_permanent(&self) -> bool {
        self.permanent
    }

    /// Why a step, a question or a timer has no value, if it is that.
    pub fn durable_error(&self) -> Option<&DurableError> {
        match &*self.kind {
            Kind::Durable(error) => Some(error),
            _ => None,
        }
    }

    /// Whether it says that the user said no to a question.
    pub fn is_declined(&self) -> bool {
        matches!(self.durable_error(), Some(DurableError::Declined { .. }))
    }

    /// Whether it says that the task was cancelled: nothing more of it begins.
    pub fn is_task_cancelled(&self) -> bool {
        matches!(self.durable_error(), Some(DurableError::TaskCancelled { .. }))
    }

    /// Whether it says that the user closed a question without a word.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.durable_error(), Some(DurableError::Cancelled { .. }))
    }

    /// Returns a `std::error::Error`, for functions and types that know no other errors.
    ///
    /// An error type of your own that wraps a [`HandlerError`] as its source keeps what the error is:
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

    /// Makes the failure of an error and its causes.
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
            // Only a text can say more than it did.
            Some(Self { kind, permanent }) => match *kind {
                Kind::Failed { data, .. } => {
                    Self { permanent, ..Self::of(Kind::Failed { message, data }) }
                }
                kind => Self { permanent, ..Self::of(kind) },
            },
            None => Self::new(message),
        }
    }

    /// What is recorded of a permanent failure.
    pub(crate) fn to_failure(&self) -> Option<StepFailure> {
        let code = match &*self.kind {
            Kind::Refused(ProtocolError::Custom(error)) => Some(error.code),
            Kind::Refused(ProtocolError::InvalidParams(_)) => Some(code::INVALID_PARAMS),
            _ => None,
        };
        self.permanent.then(|| StepFailure::new(self.to_string()).code(code))
    }

    /// The failure that is recorded.
    pub(crate) fn from_failure(failure: StepFailure) -> Self {
        let StepFailure { message, code, .. } = failure;
        let error = match code {
            None => Self::new(message),
            Some(code::INVALID_PARAMS) => Self::invalid_params(message),
            Some(code) => Self::with_code(code, message),
        };
        error.permanent()
    }

    /// As a refusal, where a failure is nothing that the caller can read as a result.
    pub(crate) fn into_fault(self, not_found: impl FnOnce() -> ProtocolError) -> ProtocolError {
        match *self.kind {
            Kind::Failed { message, .. } => ProtocolError::internal(message),
            Kind::NotFound => not_found(),
            Kind::Refused(fault) => fault,
            Kind::Durable(error) => durable_fault(error),
        }
    }

    /// Returns the failed result of a tool, or the error of the protocol that it is.
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

/// When it is worth trying again to get a permit.
const RETRY_CAPACITY: Duration = Duration::from_secs(1);

fn over_limit(limit: String) -> ProtocolError {
    ProtocolError::OverLimit { limit: limit.into(), retry_after: RETRY_CAPACITY }
}

/// What a user or a client did is told to the client; what the handler did wrong is in the log.
fn durable_fault(error: DurableError) -> ProtocolError {
    /// The code that the specification suggests for a user who says no.
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

/// Converts every error into a failure with its text and those of its causes.
///
/// A [`ProtocolError`] and a [`DurableError`] stay what they are. So does an error that went through
/// [`Error::into_std`]: from the causes too, so that a wrapped [`Error::permanent`] is still permanent.
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

/// Returns the error in an `anyhow::Error`. As a box it would be of a type that anyhow keeps to itself.
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
/// `?` and `into` make an [`Error`] of it again, and nothing is lost.
#[derive(Debug)]
pub struct HandlerError(Error);

impl HandlerError {
    /// Returns the error as handlers have it.
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
