//! Logins of the program to a real server with a real issuer.

mod commands; // login, logout, whoami
#[cfg(all(target_os = "linux", feature = "secret-service"))]
mod key_store; // logins encrypted with a key in the system's keyring
mod using; // other commands, with and without a login
pub(crate) mod world; // the issuer, the server, and the browser script
