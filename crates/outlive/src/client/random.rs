//! Random IDs.

use crate::hex::hex;

/// Returns 128 random bits in hexadecimal.
///
/// # Panics
///
/// If the random source of the system fails.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    // A fallback ID of zeros would be neither unique nor secret.
    getrandom::fill(&mut bytes).expect("the system provides random bytes");
    hex(&bytes)
}
