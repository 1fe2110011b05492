//! What 2026-07-28 has. A method that is not in this table is an unknown method.

use outlive_wire::Method;

/// The methods that clients may call.
pub(super) const HAS: &[Method] = &[
    Method::ToolsCall,
    Method::Discover,
    Method::ToolsList,
    Method::ResourcesList,
    Method::ResourceTemplatesList,
    Method::ResourcesRead,
    Method::PromptsList,
    Method::PromptsGet,
    Method::Complete,
    Method::Listen,
    Method::TasksGet,
    Method::TasksUpdate,
    Method::TasksCancel,
];
