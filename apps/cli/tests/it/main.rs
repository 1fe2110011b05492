//! The program, run as its users run it.

mod doctor; // outlive doctor
mod store; // outlive store
