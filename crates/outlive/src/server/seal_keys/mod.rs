//! The keys that seal what clients carry for a server, and where they are kept.

mod file;
mod keys;
#[cfg(test)]
mod tests;

pub use keys::{SealKeys, SealKeysError};
