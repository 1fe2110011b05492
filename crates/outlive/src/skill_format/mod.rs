//! What clients and servers share about skills: the names of the extension, and the YAML of a
//! `SKILL.md`.

mod extension;
mod frontmatter;

pub(crate) use extension::{EXTENSION, LIST};
pub(crate) use frontmatter::parse as parse_frontmatter;
