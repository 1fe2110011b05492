//! Skills: folders of instructions for agents, served as resources (extension
//! `io.modelcontextprotocol/skills`, SEP-2640).
//!
//! - `skill`: [`Skill`]; `collection`: [`Skills`], the builder's input.
//! - `folder`: reads a folder of skills.
//! - `catalog`: all skills of a server, validated, with their digests.
//!
//! All files are in memory before the first request, within the limits of this module. No request
//! accesses the file system, so no URI can escape a folder.
//! Spec: <https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx>

pub(crate) mod catalog;
mod collection;
mod error;
mod folder;
mod mime_type;
mod skill;

pub use collection::Skills;
pub use error::SkillError;
pub use skill::Skill;
