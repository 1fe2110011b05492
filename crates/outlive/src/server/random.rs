//! Random IDs.

use crate::hex::hex;

/// Returns 128 random bits in hex; `None` if the operating system gives none.
pub(crate) fn random_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(hex(&bytes))
}
