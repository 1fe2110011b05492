//! scopes.
