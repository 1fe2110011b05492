//! What asks the servers. Every answer is checked byte for byte, only its id may differ.

mod generator;
pub(crate) mod http;
pub(crate) mod stdio;
pub(crate) mod talk;

use generator::{Expected, template};
pub(crate) use generator::{Generator, Loaded};
