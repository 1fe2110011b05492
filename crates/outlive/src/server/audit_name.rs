//! Task IDs as logs and the audit log show them.

use outlive_protocol::Principal;
use sha2::{Digest, Sha256};

use crate::hex::hex;

/// Returns the task ID for logs: hashed if the ID alone grants access to the task.
pub(crate) fn name_in_audit(principal: &str, task: &str) -> String {
    if opens(principal) { digest(task) } else { task.to_owned() }
}

/// Returns whether the task ID alone grants access to a task of this principal.
pub(crate) fn opens(principal: &str) -> bool {
    Principal::from_key(principal).is_none_or(|principal| principal.is_anonymous())
}

/// Returns the hash of a task ID.
pub(crate) fn digest(task: &str) -> String {
    format!("sha256:{}", hex(&Sha256::digest(task)[..16]))
}
