//! Layer 7: what an application registers.
//!
//! - `tool`, `prompt`, `resource`, `completers`: registrations, as an application writes them.
//! - `tool_handler`: how the handler of a tool starts and returns; `registered_tool`: a tool after all
//!   checks.
//! - `registry`: entries by name and in order; `catalog`: all registries of a server.

pub(crate) mod catalog;
pub(crate) mod completers;
pub(crate) mod prompt;
pub(crate) mod registered_tool;
pub(crate) mod registry;
#[cfg_attr(not(feature = "skills"), allow(dead_code, reason = "skills use the rest"))]
pub(crate) mod resource;
pub(crate) mod tool;
pub(crate) mod tool_handler;
