//! Logins of the program, at a real server that a real issuer protects.

mod commands; // login, logout, whoami
#[cfg(all(target_os = "linux", feature = "secret-service"))]
mod key_store; // logins that open with a key of the system's key store
mod using; // what other commands do with a login, or without one
pub(crate) mod world; // the issuer, the server, and a browser that is a test
