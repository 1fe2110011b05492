//! What the legacy revisions have. A method that is not in this table is an unknown method.

use outlive_wire::Method;

/// The methods that clients may call since 2025-11-25.
pub(super) const TASKS: &[Method] =
    &[Method::TasksGet, Method::TasksResult, Method::TasksList, Method::TasksCancel];

/// The methods that clients may call, the same in all four revisions.
pub(super) const HAS: &[Method] = &[
    Method::ToolsCall,
    Method::Initialize,
    Method::Ping,
    Method::ToolsList,
    Method::ResourcesList,
    Method::ResourceTemplatesList,
    Method::ResourcesRead,
    Method::ResourcesSubscribe,
    Method::ResourcesUnsubscribe,
    Method::PromptsList,
    Method::PromptsGet,
    Method::Complete,
    Method::SetLevel,
];

/// What clients tell servers.
pub(super) const NOTIFIED: &[Method] =
    &[Method::Initialized, Method::Cancelled, Method::Progress, Method::RootsListChanged];
