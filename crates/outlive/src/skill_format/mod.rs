//! Parts of the skills extension that client and server share: its names and the YAML of a
//! `SKILL.md`.

mod extension;
mod frontmatter;

pub(crate) use extension::{EXTENSION, LIST};
pub(crate) use frontmatter::parse as parse_frontmatter;
