//! The error of keyrings.

/// Why the keyring cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client::store) enum KeyringError {
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
