//! Names of the extension for skills, as both peers write them.

/// The name of the extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// The method that lists skills.
pub(crate) const LIST: &str = "skills/list";
