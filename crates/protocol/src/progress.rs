//! Progress of a call or task.

use serde::{Deserialize, Serialize};

/// Progress of a call or task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "the three values of the specification")]
pub struct Progress {
    /// Completed amount, in any unit. Increases with every notification.
    pub done: f64,
    /// Total amount in the same unit, if known.
    pub total: Option<f64>,
    /// Description of the current work.
    pub message: Option<String>,
}
