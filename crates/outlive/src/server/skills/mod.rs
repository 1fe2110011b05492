//! Skills: folders of instructions for agents, served as resources (extension
//! `io.modelcontextprotocol/skills`, SEP-2640).
//!
//! - `skill`: [`Skill`] and [`Skills`], as an application gives them.
//! - `folder`: reads a folder of skills.
//! - `catalog`: all skills of a server, checked, with their digests.
//! - `methods`: the three methods of the extension.
//!
//! All files are in memory before the first request, within the limits of this module. No request
//! reaches the file system, so no URI can lead out of a folder.
//! Spec: <https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx>

mod catalog;
mod error;
mod folder;
mod methods;
mod mime_type;
mod skill;

pub(super) use catalog::Catalog;
pub use error::SkillError;
pub(super) use methods::{methods, resources};
pub use skill::{Skill, Skills};
