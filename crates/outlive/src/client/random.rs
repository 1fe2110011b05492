//! Random IDs.

use crate::hex::hex;

/// Returns 128 random bits in hexadecimal.
///
/// # Panics
///
/// If the random source of the system fails.
pub(crate) fn random_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness there is nothing safe to do; a name of zeros would be shared.
    getrandom::fill(&mut bytes).expect("the system has randomness");
    hex(&bytes)
}
