//! How every validator of the `jsonschema` crate is built.

use jsonschema::{Draft, ValidationOptions};

/// How every validator is built. Nothing is fetched, whatever features of `jsonschema` other
/// crates switch on; formats are annotations in all dialects, as they are by default in 2020-12.
pub(super) fn options(draft: Draft) -> ValidationOptions<'static> {
    jsonschema::options().with_draft(draft).offline().should_validate_formats(false)
}
