//! The messages of a run: any number of notifications and partial responses, then
//! [`Message::Last`].

use std::{sync::Arc, time::Duration};

use outlive_wire::{InputRequest, LoggingLevel, Method, RawJson, SubscriptionFilter};

use crate::{Outcome, PartialResponse, Progress, ProtocolError, SegmentPage, TaskView};

/// A message of a run to its client.
#[derive(Debug)]
#[non_exhaustive]
pub enum Message {
    /// A notification or server-to-client request.
    Notify(Notify),
    /// A partial response. Only for clients that requested partial responses, and never the last
    /// message.
    Partial(Box<PartialResponse>),
    /// The final result or error.
    Last(Result<Outcome, ProtocolError>),
}

/// A notification or request of a run, independent of the era.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notify {
    /// Progress of the call.
    Progress(Progress),
    /// Progress of a task, for the call that created the task.
    TaskProgress {
        /// Progress token of that call.
        token: RawJson,
        /// The progress.
        progress: Progress,
    },
    /// A log message.
    Log {
        /// Severity.
        level: LoggingLevel,
        /// Name of the logger.
        logger: Option<Arc<str>>,
        /// The message: any JSON value.
        data: RawJson,
    },
    /// The server accepted a subscription, with the filter that it applies.
    Acknowledged(SubscriptionFilter),
    /// A list or a resource changed.
    Changed(Change),
    /// Close the connection but continue the call; the client reconnects. Ignored if the stream
    /// cannot be resumed.
    Detach {
        /// Delay before the client reconnects.
        retry: Duration,
    },
    /// An input request that the run waits for. Legacy era only.
    Ask {
        /// Request ID in the session.
        id: u64,
        /// The input request.
        request: Box<InputRequest>,
    },
    /// A request about a task that the client runs. 2025-11-25 only.
    AskTask {
        /// Request ID in the session.
        id: u64,
        /// Method of the request.
        method: Method,
        /// ID of the client's task.
        task: String,
    },
    /// Cancels an input request.
    Withdraw {
        /// Request ID of the input request.
        id: u64,
        /// Reason of the cancellation.
        reason: &'static str,
    },
    /// The state of a task that the client subscribes to or waits for.
    Task(Box<TaskView>),
    /// New segments of a task that the client subscribes to.
    Emitted(Box<SegmentPage>),
    /// The user completed a URL elicitation. 2025-11-25 only.
    UrlDone {
        /// ID of the elicitation.
        elicitation_id: String,
    },
    /// A custom notification of the application.
    Custom {
        /// Name of the method.
        method: Arc<str>,
        /// Parameters: an object.
        params: Option<RawJson>,
    },
}

/// A change that clients can subscribe to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the four of the specification")]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or resource templates.
    Resources,
    /// The contents of the resource with this URI.
    Resource(Arc<str>),
}
