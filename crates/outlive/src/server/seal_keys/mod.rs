//! Keys that seal the data that clients hold for a server, and the files they are stored in.

mod file;
mod keys;
#[cfg(test)]
mod tests;

pub use keys::{SealKeys, SealKeysError};
