//! `cargo xtask public-api`: compares every public name of `outlive` and `outlive-wire` with the
//! snapshots in `api/`.
//!
//! It parses the sources with `syn`, so it needs no nightly compiler and takes seconds. `model`
//! joins the files of the libraries, `list` walks from a crate's root, `text` writes signatures,
//! `command` compares.

mod command;
mod list;
mod model;
mod text;

pub(crate) use self::command::run;
