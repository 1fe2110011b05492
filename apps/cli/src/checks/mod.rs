//! Checks that `outlive serve` and `outlive doctor` share.
//!
//! - `files`: permissions of files and folders.
//! - `people`: people whom the file names.
//! - `skills`: the skills folder.
//! - `tools`: programs and folders of the tools, and access to the server from other machines.
//! - `upstreams`: programs, folders and values of the upstreams. `workers`: those of tool workers.

mod check;
mod files;
mod people;
mod skills;
mod tools;
mod upstreams;
mod workers;

pub(crate) use check::{Check, Level, admit, warn};
pub(crate) use files::{data_folder, keys, store_file, tokens};
pub(crate) use people::people;
pub(crate) use skills::skills;
pub(crate) use tools::{reach, tools};
pub(crate) use upstreams::upstreams;
pub(crate) use workers::workers;
