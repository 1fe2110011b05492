//! `cargo xtask release --dry-run`: makes and tests everything that a release publishes, and uploads
//! nothing.
//!
//! `command` has the list of steps, and each step is one file. `archive` and `oci` write formats,
//! `payload` has the files beside the binary, `smoke` starts the program, `artifacts` is the folder
//! of results.

mod archive;
mod artifacts;
mod binary;
mod command;
mod deb;
mod elf;
mod homebrew;
mod image;
mod kubernetes;
mod oci;
mod packages;
mod payload;
mod roots;
mod smoke;
#[cfg(test)]
mod yaml_files;

pub(crate) use self::command::run;
