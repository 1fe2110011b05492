//! A real PostgreSQL for tests: started for them, and gone with them. `cargo xtask postgres` starts one
//! for tests that are run by hand.
//!
//! The programs are the system's, or those of a pinned package (`postgres/programs.rs`). It runs as
//! somebody who is not root, in a temporary folder, and is reached through a socket there: it is
//! nobody else's business.

mod programs;
mod server;

pub(crate) use programs::Programs;
pub(crate) use server::{Postgres, run};
