//! Limits of a schema document.

/// Maximum nesting depth of schemas. Hand-written schemas stay below ten. The limit also bounds the
/// stack, because the compilers recurse once per level.
pub(super) const MAX_DEPTH: usize = 64;

/// Maximum number of schemas in one document. Large generated tool schemas have a few hundred, and
/// every client must read all of them.
pub(super) const MAX_SUBSCHEMAS: usize = 4096;
