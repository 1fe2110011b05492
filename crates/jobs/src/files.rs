//! Names and times in a folder of jobs.

use std::{
    fs,
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, ErrorKind},
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// Whether this can be the id of a job, which is the name of its folder.
pub(super) fn is_id(name: &str) -> bool {
    // Only small letters: some file systems do not tell them from capitals.
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (1..=64).contains(&name.len()) && name.bytes().all(is_digit)
}

/// A short name that nothing else has.
pub(super) fn random_name() -> String {
    // Its keys are random for each process, and others each time.
    let random = RandomState::new().build_hasher().finish();
    format!("{:08x}", (random ^ (random >> 32)) as u32)
}

/// Milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The text of a file, if it is there.
pub(super) fn read_optional(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
