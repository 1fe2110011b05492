//! The program `outlive`, and what runs below it, as real processes.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod doctor; // outlive doctor
mod store; // outlive store
