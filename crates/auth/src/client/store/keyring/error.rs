//! Errors of keyrings.

/// Reason why the keyring cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client::store) enum KeyringError {
    /// The system has no keyring.
    Absent,
    /// The keyring is locked.
    #[cfg_attr(
        not(any(target_os = "macos", all(unix, feature = "secret-service"))),
        expect(
            dead_code,
            reason = "only these keyrings can be locked while the user is logged in"
        )
    )]
    Locked,
    /// The keyring failed.
    Failed(String),
}
