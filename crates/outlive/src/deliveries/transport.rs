//! [`DeliveryTransport`]: how messages reach the receiver of a target.

use std::{error::Error, fmt, future::Future, pin::Pin, time::Duration};

use outlive_tasks::store::TaskEvent;

/// Time of one attempt.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);

/// Future of [`DeliveryTransport::send`].
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = Result<(), SendError>> + Send + 'a>>;

/// Sends messages to the receiver of a target, such as a webhook or a command.
///
/// ```
/// use outlive::deliveries::{DeliveryTransport, Message, SendFuture};
///
/// struct ToLog;
///
/// impl DeliveryTransport for ToLog {
///     fn send<'a>(&'a self, message: &'a Message) -> SendFuture<'a> {
///         Box::pin(async move {
///             println!("{}", message.body);
///             Ok(())
///         })
///     }
/// }
/// ```
pub trait DeliveryTransport: Send + Sync + 'static {
    /// Sends a message. A message whose attempt failed, or whose sender crashed, is sent again with
    /// the same ID. Dropping the future ends the attempt.
    fn send<'a>(&'a self, message: &'a Message) -> SendFuture<'a>;

    /// Returns the time after which an attempt fails; 15 seconds by default.
    fn timeout(&self) -> Duration {
        ATTEMPT_TIMEOUT
    }

    /// Checks the settings when the server is built. The error names the remedy.
    ///
    /// # Errors
    ///
    /// Returns an error if no message could ever be sent.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A message to a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// ID of the message, the same for every attempt.
    pub id: String,
    /// Event of the message.
    pub event: TaskEvent,
    /// Time of the attempt, in seconds since the Unix epoch.
    pub timestamp: u64,
    /// JSON text, below 20 KB.
    pub body: String,
}

impl Message {
    /// Creates a message.
    pub fn new(id: impl Into<String>, event: TaskEvent, timestamp: u64, body: String) -> Self {
        Self { id: id.into(), event, timestamp, body }
    }
}

/// A failed attempt. The text says what happened, without text of the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The message is sent again at the next time of the schedule.
    Failed(String),
    /// The receiver is busy. The message is not sent again before this time has passed.
    Busy(String, Duration),
    /// The receiver wants no message of this target. The target stops until the server restarts.
    Gone(String),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(reason) | Self::Busy(reason, _) | Self::Gone(reason) => {
                f.write_str(reason)
            }
        }
    }
}

impl Error for SendError {}
