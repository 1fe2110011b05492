//! `cargo xtask public-api`: every public name of `outlive` and `outlive-wire`, beside the snapshots in `api/`.
//!
//! Read from the sources with `syn`, so it needs no nightly compiler and takes seconds: `model` joins the files of the
//! workspace's libraries, `list` walks what can be reached from a crate's root, `text` writes signatures, `command` compares.

mod command;
mod list;
mod model;
mod text;

pub(crate) use self::command::run;
