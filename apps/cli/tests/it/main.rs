//! Tests of the program `outlive`, and its child processes, as real processes.

#![allow(clippy::unwrap_used, reason = "test code, including helpers")]

#[cfg(unix)]
mod auth; // logins, with a script as browser and a real issuer
mod call; // `outlive call`, `outlive tasks` and `outlive inspect`, in pipes and in a terminal
mod doctor; // `outlive doctor`
mod first_steps; // `outlive init` and `outlive connect`
#[cfg(target_os = "linux")]
mod serve; // `outlive serve`, its file and its commands; finds leftover processes in /proc
mod store; // `outlive store`
mod upstreams; // `outlive upstreams` without a server
