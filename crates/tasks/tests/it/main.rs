//! The stores, put to their contract.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod memory; // the store that forgets
