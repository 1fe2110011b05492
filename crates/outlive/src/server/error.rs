//! What handlers fail with.
//!
//! A tool that ran and failed is a *result* that its model can read; a request that we refuse is a
//! [`ProtocolError`]. Handlers return this type for both, and `?` on a foreign error makes the first.

use std::{any::Any, fmt, time::Duration};

use outlive_protocol::ProtocolError;
use outlive_tasks::StepFailure;
use outlive_wire::{ErrorObject, code};

use crate::server::durable_error::DurableError;

/// The result of a handler.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A handler's failure.
///
/// Not itself a `std::error::Error`, so that every such error turns into it by `?`.
pub struct Error {
    kind: Box<Kind>,
    permanent: bool,
}

enum Kind {
    /// The work failed; the text is for the caller.
    Failed(String),
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
        Self::of(Kind::Failed(message.into()))
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
            Kind::Failed(cause) => ProtocolError::internal(cause),
            Kind::NotFound => not_found(),
            Kind::Refused(fault) => fault,
            Kind::Durable(error) => durable_fault(error),
        }
    }

    /// As the text of a tool's failed result, or as a refusal.
    pub(crate) fn into_tool_error(self) -> std::result::Result<String, ProtocolError> {
        match *self.kind {
            Kind::Failed(message) => Ok(message),
            Kind::NotFound => Ok("not found".into()),
            Kind::Refused(fault) => Err(fault),
            Kind::Durable(DurableError::MissingCapability { required, .. }) => {
                Err(ProtocolError::MissingCapability { required })
            }
            Kind::Durable(DurableError::NoCapacity { capacity }) => Err(over_limit(capacity)),
            Kind::Durable(error) => Ok(error.to_string()),
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

/// Any error becomes a failure with its text and those of its causes; a [`ProtocolError`] stays a refusal.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(error: E) -> Self {
        if let Some(fault) = (&error as &dyn Any).downcast_ref::<ProtocolError>() {
            return Self::of(Kind::Refused(fault.clone()));
        }
        if let Some(error) = (&error as &dyn Any).downcast_ref::<DurableError>() {
            return Self::of(Kind::Durable(error.clone()));
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
        match &*self.kind {
            Kind::Failed(message) => f.write_str(message),
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
