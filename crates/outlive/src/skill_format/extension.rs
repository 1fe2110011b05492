//! Names of the skills extension, for client and server.

/// Name of the extension.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/skills";

/// Method that lists skills.
pub(crate) const LIST: &str = "skills/list";
