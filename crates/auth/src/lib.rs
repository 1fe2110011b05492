//! OAuth for both ends: servers that check tokens, clients that get them.
//!
//! - [`fetch`]: documents of others, read with care.

pub mod fetch;
