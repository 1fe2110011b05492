//! What a run says. Everything before [`Message::Last`] is optional; nothing follows it.

use std::{sync::Arc, time::Duration};

use outlive_wire::{InputRequest, LoggingLevel, Method, RawJson, SubscriptionFilter};

use crate::{Outcome, PartialResponse, Progress, ProtocolError, SegmentPage, TaskView};

/// One thing a run says to its client.
#[derive(Debug)]
#[non_exhaustive]
pub enum Message {
    /// Something on the way.
    Notify(Notify),
    /// A response of several with one id, to a client that has asked for that. Not the last.
    Partial(Box<PartialResponse>),
    /// The end.
    Last(Result<Outcome, ProtocolError>),
}

/// What a run says on the way, before an era has shaped it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Notify {
    /// How far the work is.
    Progress(Progress),
    /// How far the work of a task is, for the call that made it.
    TaskProgress {
        /// The token of that call.
        token: RawJson,
        /// How far.
        progress: Progress,
    },
    /// A line of log.
    Log {
        /// How much it matters.
        level: LoggingLevel,
        /// Who says it.
        logger: Option<Arc<str>>,
        /// What.
        data: RawJson,
    },
    /// A subscription has begun, with what is honoured of it.
    Acknowledged(SubscriptionFilter),
    /// Something that others may have listed or read is different now.
    Changed(Change),
    /// Close the connection, not the call: the client comes back for the rest. Where a stream
    /// cannot be resumed nothing happens.
    Detach {
        /// When the client should come back.
        retry: Duration,
    },
    /// A question that the run waits for; only where the wire has requests from server to client.
    Ask {
        /// The id that the session gave it.
        id: u64,
        /// The question.
        request: Box<InputRequest>,
    },
    /// A request about a task that the client runs for us; only where clients do.
    AskTask {
        /// The id that the session gave it.
        id: u64,
        /// What is wanted of the task.
        method: Method,
        /// The client's name of it.
        task: String,
    },
    /// A question is not worth answering any more.
    Withdraw {
        /// The id it had.
        id: u64,
        /// Why.
        reason: &'static str,
    },
    /// A task that the client listens to, or waits for, has changed.
    Task(Box<TaskView>),
    /// A task that the client listens to has emitted something.
    Emitted(Box<SegmentPage>),
    /// What the user was sent to a URL for is done; 2025-11-25 only.
    UrlDone {
        /// The id that the question had.
        elicitation_id: String,
    },
    /// A notification of the application's own.
    Custom {
        /// Its name.
        method: Arc<str>,
        /// Its parameters, an object.
        params: Option<RawJson>,
    },
}

/// What may change behind a client's back.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the four of the specification")]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources or of their templates.
    Resources,
    /// The contents of one resource.
    Resource(Arc<str>),
}
