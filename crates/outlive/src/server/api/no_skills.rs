//! Replaces the module `skills` if the feature `skills` is disabled.

use std::{convert::Infallible, sync::Arc};

use crate::server::{
    api::builder::ServerBuilder, build_error::BuildError, register::registries::UnlistedResources,
};

/// Uninhabited: without the feature, a builder cannot hold skills.
pub(crate) type Skills = Infallible;

/// Registers no resources.
#[expect(clippy::unnecessary_wraps, reason = "the signature of the feature `skills`")]
pub(super) fn register(
    builder: &mut ServerBuilder,
) -> Result<Option<Arc<dyn UnlistedResources>>, BuildError> {
    match builder.skills.take() {
        None => Ok(None),
        Some(never) => match never {},
    }
}
