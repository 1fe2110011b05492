//! The program `outlive`, and what runs below it, as real processes.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

#[cfg(unix)]
mod auth; // logins: a browser that is a script, a real issuer
mod call; // `outlive call`, `outlive tasks` and `outlive inspect`, piped and at a terminal
mod doctor; // `outlive doctor`
mod first_steps; // `outlive init` and `outlive connect`
#[cfg(target_os = "linux")]
mod serve; // `outlive serve`, its file and its commands; what is left of them is looked for in /proc
mod store; // `outlive store`
