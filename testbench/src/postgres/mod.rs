//! A temporary PostgreSQL for tests. `cargo xtask postgres` starts one for manual tests.
//!
//! The programs come from the system or a pinned package (`postgres/programs.rs`). The server runs
//! as an unprivileged user in a temporary folder and listens only on a socket there.

mod programs;
mod server;

pub(crate) use programs::Programs;
pub(crate) use server::{Postgres, run};
