//! Names and times in a jobs folder.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, ErrorKind},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// Returns whether `name` is a valid job ID, which is the name of the folder.
pub(super) fn is_id(name: &str) -> bool {
    // Only lower-case digits are valid, because some file systems are case-insensitive.
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (1..=64).contains(&name.len()) && name.bytes().all(is_digit)
}

/// Returns a short random name.
pub(super) fn random_name() -> String {
    // `RandomState` has new random keys each time.
    let random = RandomState::new().build_hasher().finish();
    format!("{:08x}", (random ^ (random >> 32)) as u32)
}

/// Returns the time in Unix milliseconds.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the text of a file, or `None` if it does not exist.
pub(super) fn read_optional(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
