//! The error of keyrings.

/// Why the keyring cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client::store) enum KeyringError {
    /// There is no such place here.
    Absent,
    /// There is one, and it is locked.
    #[cfg_attr(
        not(any(target_os = "macos", all(unix, feature = "secret-service"))),
        expect(dead_code, reason = "only these keyrings can be locked while their user is there")
    )]
    Locked,
    /// There is one, and it does not work.
    Failed(String),
}
