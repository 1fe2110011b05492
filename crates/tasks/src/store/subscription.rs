//! Events of a task that targets are notified of.

use serde::{Deserialize, Serialize};

/// An event that a target is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(clippy::exhaustive_enums, reason = "stores must handle every event")]
pub enum TaskEvent {
    /// An input request was opened whose audience is not [`Client`](super::Audience::Client).
    #[serde(rename = "input_request.opened")]
    InputRequestOpened,
    /// Such an input request was settled or withdrawn, also by the end of its task.
    #[serde(rename = "input_request.settled")]
    InputRequestSettled,
    /// The task ended.
    #[serde(rename = "task.ended")]
    TaskEnded,
    /// The task was quarantined.
    #[serde(rename = "task.quarantined")]
    TaskQuarantined,
}

impl TaskEvent {
    /// All events.
    pub const ALL: [Self; 4] = [
        Self::InputRequestOpened,
        Self::InputRequestSettled,
        Self::TaskEnded,
        Self::TaskQuarantined,
    ];

    /// Returns the name in `outlive.toml` and in bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InputRequestOpened => "input_request.opened",
            Self::InputRequestSettled => "input_request.settled",
            Self::TaskEnded => "task.ended",
            Self::TaskQuarantined => "task.quarantined",
        }
    }

    /// Returns the event with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }
}

/// A target that is notified of an event of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Subscription {
    /// The event.
    #[serde(rename = "e")]
    pub event: TaskEvent,
    /// Name of the target.
    #[serde(rename = "t")]
    pub target: String,
}

impl Subscription {
    /// Creates a subscription.
    pub fn new(event: TaskEvent, target: impl Into<String>) -> Self {
        Self { event, target: target.into() }
    }
}
