//! Builders without the feature `skills`: there are none.

use std::{convert::Infallible, sync::Arc};

use crate::server::{
    api::builder::ServerBuilder, build_error::BuildError, register::catalog::UnlistedResources,
};

/// Skills have no value without the feature.
pub(crate) type Skills = Infallible;

/// Adds nothing.
#[expect(clippy::unnecessary_wraps, reason = "the signature of the feature `skills`")]
pub(super) fn register(
    builder: &mut ServerBuilder,
) -> Result<Option<Arc<dyn UnlistedResources>>, BuildError> {
    match builder.skills.take() {
        None => Ok(None),
        Some(never) => match never {},
    }
}
