//! Keyrings of the operating systems. Each stores one small key of this program.
//!
//! No keyring prompts the user: a locked keyring counts as unavailable.

#[cfg(all(unix, not(target_os = "macos"), not(feature = "secret-service")))]
mod absent;
#[cfg(windows)]
mod credential_manager;
mod error;
#[cfg(target_os = "macos")]
mod keychain;
#[cfg(all(unix, not(target_os = "macos"), feature = "secret-service"))]
mod secret_service;

#[cfg(all(unix, not(target_os = "macos"), not(feature = "secret-service")))]
pub(super) use absent::{NAME, get, put};
#[cfg(windows)]
pub(super) use credential_manager::{NAME, get, put};
pub(super) use error::KeyringError;
#[cfg(target_os = "macos")]
pub(super) use keychain::{NAME, get, put};
#[cfg(all(unix, not(target_os = "macos"), feature = "secret-service"))]
pub(super) use secret_service::{NAME, get, put};
