//! The program as its users have it: its own binary, started for each test.

// `outlive call`, `outlive tasks` and `outlive inspect`, piped and at a terminal.
mod call;
