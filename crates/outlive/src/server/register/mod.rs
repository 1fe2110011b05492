//! Layer 7: tools, prompts and resources that an application registers.
//!
//! - `tool`, `prompt`, `resource`, `completers`: the builders of these items.
//! - `tool_registration`: validates a tool; `registered_tool`: a validated tool; `tool_handler`:
//!   starts a tool's handler and converts its return value.
//! - `widened_schema`: output schemas that allow pending results.
//! - `registry`: items by name and in order; `registries`: all registries of a server.
//! - `catalog`: items that depend on the call; `entry`: their definitions; `catalog_handle`: creates
//!   entries and notifies clients; `catalog_port`: the catalog of a server.

pub(crate) mod catalog;
pub(crate) mod catalog_handle;
pub(crate) mod catalog_port;
pub(crate) mod completers;
pub(crate) mod entry;
pub(crate) mod prompt;
pub(crate) mod registered_tool;
pub(crate) mod registries;
pub(crate) mod registry;
#[cfg_attr(not(feature = "skills"), allow(dead_code, reason = "only skills use all of it"))]
pub(crate) mod resource;
pub(crate) mod tool;
pub(crate) mod tool_handler;
mod tool_registration;
mod widened_schema;
