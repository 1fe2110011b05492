//! The operating system's own place for secrets, in which one small secret of ours is kept.
//!
//! One file for each system. Nothing here asks the user anything: a place that is locked is a place
//! that cannot be used now.

#[cfg(windows)]
mod credential_manager;
#[cfg(all(unix, not(target_os = "macos")))]
mod dbus;
#[cfg(target_os = "macos")]
mod keychain;
#[cfg(all(unix, not(target_os = "macos")))]
mod secret_service;

#[cfg(windows)]
use credential_manager as system;
#[cfg(target_os = "macos")]
use keychain as system;
#[cfg(all(unix, not(target_os = "macos")))]
use secret_service as system;

/// What the place is called.
pub(super) const NAME: &str = system::NAME;

/// Why a secret is not to be had. The text says it to people.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// There is no such place here.
    Absent,
    /// There is one, and it is locked.
    #[cfg_attr(
        windows,
        expect(dead_code, reason = "that of Windows is open while its user is there")
    )]
    Locked,
    /// There is one, and it does not work.
    Failed(String),
}

/// The secret of this name, if there is one.
pub(super) fn get(name: &str) -> Result<Option<Vec<u8>>, Unusable> {
    system::get(name)
}

/// Keeps a secret in place of the one that was there.
pub(super) fn put(name: &str, secret: &[u8]) -> Result<(), Unusable> {
    system::put(name, secret)
}
