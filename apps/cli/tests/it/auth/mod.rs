//! Logins of the program, at a real server that a real issuer protects.

mod commands; // login, logout, whoami
mod using; // what other commands do with a login, or without one
pub(crate) mod world; // the issuer, the server, and a browser that is a test
