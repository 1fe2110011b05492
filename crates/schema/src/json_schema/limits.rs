//! Limits of a schema document.

/// How deep schemas may stand in each other. Hand-written tools stay below ten; the compilers
/// recurse once per level, so this also bounds their stack.
pub(super) const MAX_DEPTH: usize = 64;

/// How many schemas one document may hold. The largest generated tool schemas we know have a few
/// hundred, and a client has to read all of them before it can call the tool.
pub(super) const MAX_SUBSCHEMAS: usize = 4096;
