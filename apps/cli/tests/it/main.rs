//! The program as its users have it: its own binary, started for each test.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod call; // `outlive call`, `outlive tasks` and `outlive inspect`, piped and at a terminal
