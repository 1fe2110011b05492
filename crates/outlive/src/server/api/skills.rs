//! Adds skills to a server builder.

use std::sync::Arc;

use crate::server::{
    api::builder::ServerBuilder, build_error::BuildError, dispatch::skills as methods,
    register::registries::UnlistedResources,
};
use crate::skill_format::EXTENSION;

pub(crate) use crate::server::skills::Skills;

impl ServerBuilder {
    /// Adds skills and declares the extension `io.modelcontextprotocol/skills`. Every caller of the
    /// server can read them.
    pub fn skills(mut self, skills: Skills) -> Self {
        self.skills.get_or_insert_default().extend(skills);
        self
    }
}

/// Validates the skills, registers their methods and listed resources, and returns their unlisted
/// files.
pub(super) fn register(
    builder: &mut ServerBuilder,
) -> Result<Option<Arc<dyn UnlistedResources>>, BuildError> {
    let Some(skills) = builder.skills.take() else { return Ok(None) };
    let catalog = skills.into_catalog().map_err(|error| BuildError(error.to_string()))?;
    let catalog = Arc::new(catalog);
    builder.offers.resources = true;
    let settings = serde_json::json!({"directoryRead": true});
    builder.extensions.insert(EXTENSION.to_owned(), settings);
    for (name, method) in methods::methods(&catalog) {
        builder.methods.insert(name.into(), method);
    }
    builder.resources.extend(methods::resources(&catalog));
    Ok(Some(catalog))
}
