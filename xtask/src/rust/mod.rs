//! Rust analysis for tidy: files parsed with `syn`, crates with resolved names, and graphs over
//! them.
//!
//! `facts` is plain data, `tokens` and `read` produce it from one file, `krate` joins the files of
//! a crate, `graph` finds cycles.

mod facts;
mod graph;
mod krate;
mod read;
mod tokens;

pub(crate) use self::facts::Facts;
pub(crate) use self::graph::Graph;
pub(crate) use self::krate::{Import, Krate};
pub(crate) use self::read::{attrs, is_for_tests, read};
