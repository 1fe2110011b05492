//! The protocol versions as data.
//!
//! A version is one [`VersionRules`] constant and its entry in [`VERSIONS`]. Differences that no
//! field expresses are code of the codecs in [`era`](crate::era).

mod rules;
mod set;
#[cfg(test)]
mod tests;

pub(crate) use rules::FIRST_MODERN;
pub use rules::{
    Era, EventIdMode, InputMode, InputSupport, OnDisconnect, TASK_ORIGINS, TaskDialect, VERSIONS,
    VersionRules,
};
pub use set::VersionSet;
