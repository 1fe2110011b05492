//! What a server tells outside of any call.

use outlive_protocol::{
    Incoming, IncomingKind,
    era::client::{TaskSnapshot, read_task},
};
use outlive_wire::{
    ElicitationCompleteNotificationParams, LoggingMessageNotificationParams, Method, RawJson,
    ResourceUpdatedNotificationParams,
};

/// Something that a server told.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ServerNotification {
    /// The list of tools changed.
    ToolsChanged,
    /// The list of prompts changed.
    PromptsChanged,
    /// The list of resources changed.
    ResourcesChanged,
    /// A resource changed, or one below a resource that was subscribed to.
    ResourceUpdated(String),
    /// A line of the server's log.
    Log(LoggingMessageNotificationParams),
    /// A task has come so far.
    Task(Box<TaskSnapshot>),
    /// The user has done what a URL was for; 2025-11-25.
    UrlDone(String),
    /// There is a new connection; what was told in between was missed.
    Reconnected,
    /// Something else, verbatim.
    Other {
        /// The name of the notification.
        method: String,
        /// Its parameters.
        params: RawJson,
    },
}

impl ServerNotification {
    /// Reads a notification; `None` if it says nothing that anybody could want.
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
            // Of a request that nobody waits for any more.
            Some(Method::Progress | Method::Cancelled | Method::Acknowledged) => None,
            _ => Some(Self::Other {
                method: name.to_string(),
                params: serde_json::from_str(message.params_text()).ok()?,
            }),
        }
    }
}
