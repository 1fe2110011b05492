//! How far the work of a call or task is.

use serde::{Deserialize, Serialize};

/// How far the work is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "the three values of the specification")]
pub struct Progress {
    /// What is done, in any unit; grows from one notification to the next.
    pub done: f64,
    /// All there is to do, in the same unit, if that is known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}
