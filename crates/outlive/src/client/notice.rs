//! Notifications of a server outside of calls.

use outlive_protocol::{
    Incoming, IncomingKind,
    era::client::{TaskSnapshot, read_task},
};
use outlive_wire::{
    ElicitationCompleteNotificationParams, LoggingMessageNotificationParams, Method, RawJson,
    ResourceUpdatedNotificationParams,
};

/// Notification of a server outside of calls.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerNotification {
    /// The list of tools changed.
    ToolsChanged,
    /// The list of prompts changed.
    PromptsChanged,
    /// The list of resources changed.
    ResourcesChanged,
    /// A subscribed resource changed, or a resource below it.
    ResourceUpdated(String),
    /// A log message of the server.
    Log(LoggingMessageNotificationParams),
    /// Status of a task.
    Task(Box<TaskSnapshot>),
    /// ID of a URL elicitation that the user completed; 2025-11-25.
    UrlDone(String),
    /// The client reconnected. Notifications in between are lost.
    Reconnected,
    /// Any other notification.
    Other {
        /// Method of the notification.
        method: String,
        /// Parameters of the notification.
        params: RawJson,
    },
}

impl ServerNotification {
    /// Parses a notification. Returns `None` for notifications that subscribers do not need.
    pub(crate) fn read(message: &Incoming) -> Option<Self> {
        let IncomingKind::Notification { method, name, .. } = message.kind() else { return None };
        match method {
            Some(Method::ToolsListChanged) => Some(Self::ToolsChanged),
            Some(Method::PromptsListChanged) => Some(Self::PromptsChanged),
            Some(Method::ResourcesListChanged) => Some(Self::ResourcesChanged),
            Some(Method::ResourceUpdated) => {
                let params: ResourceUpdatedNotificationParams = message.params().ok()?;
                Some(Self::ResourceUpdated(params.uri))
            }
            Some(Method::LogMessage) => message.params().ok().map(Self::Log),
            Some(Method::Tasks | Method::TasksStatus) => {
                read_task(message.params_text()).ok().map(|task| Self::Task(Box::new(task)))
            }
            Some(Method::ElicitationComplete) => {
                let params: ElicitationCompleteNotificationParams = message.params().ok()?;
                Some(Self::UrlDone(params.elicitation_id))
            }
            // These belong to a request that is no longer pending.
            Some(Method::Progress | Method::Cancelled | Method::Acknowledged) => None,
            _ => Some(Self::Other {
                method: name.to_string(),
                params: serde_json::from_str(message.params_text()).ok()?,
            }),
        }
    }
}
