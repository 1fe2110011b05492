//! The names of all methods and notifications, defined once.
//!
//! The version rules in `outlive-protocol` list the methods of each version.

macro_rules! methods {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A method or notification of the specification.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Method {
            $($(#[$doc])* #[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl Method {
            /// Every method, in the order of the specification.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the name as in messages.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Finds a method by name; `None` if no version has it.
            pub fn parse(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

methods! {
    Initialize = "initialize",
    Initialized = "notifications/initialized",
    Ping = "ping",
    Discover = "server/discover",
    ToolsList = "tools/list",
    ToolsCall = "tools/call",
    ResourcesList = "resources/list",
    ResourceTemplatesList = "resources/templates/list",
    ResourcesRead = "resources/read",
    ResourcesSubscribe = "resources/subscribe",
    ResourcesUnsubscribe = "resources/unsubscribe",
    PromptsList = "prompts/list",
    PromptsGet = "prompts/get",
    Complete = "completion/complete",
    SetLevel = "logging/setLevel",
    Listen = "subscriptions/listen",
    CreateMessage = "sampling/createMessage",
    RootsList = "roots/list",
    Elicit = "elicitation/create",
    TasksGet = "tasks/get",
    TasksUpdate = "tasks/update",
    TasksCancel = "tasks/cancel",
    TasksResult = "tasks/result",
    TasksList = "tasks/list",
    Cancelled = "notifications/cancelled",
    Progress = "notifications/progress",
    LogMessage = "notifications/message",
    ToolsListChanged = "notifications/tools/list_changed",
    PromptsListChanged = "notifications/prompts/list_changed",
    ResourcesListChanged = "notifications/resources/list_changed",
    ResourceUpdated = "notifications/resources/updated",
    Acknowledged = "notifications/subscriptions/acknowledged",
    RootsListChanged = "notifications/roots/list_changed",
    ElicitationComplete = "notifications/elicitation/complete",
    TasksStatus = "notifications/tasks/status",
    Tasks = "notifications/tasks",
    /// Of the Outlive extension `dev.outlive/task-partials`:
    TaskPartials = "notifications/dev.outlive/task_partials",
}
