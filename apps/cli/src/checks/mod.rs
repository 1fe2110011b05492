//! What `outlive serve` and `outlive doctor` look at alike: one list of checks, and two readers.
//!
//! - `files`: files and folders that others than this user can read or write.
//! - `skills`: the folder of skills.
//! - `tools`: programs and folders of the tools, and who can reach the server.

mod check;
mod files;
mod skills;
mod tools;

pub(crate) use check::{Check, Level, admit, warn};
pub(crate) use files::{data_folder, keys, store_file, tokens};
pub(crate) use skills::skills;
pub(crate) use tools::{is_loopback, reach, tools};
