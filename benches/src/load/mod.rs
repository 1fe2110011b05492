//! The load generators. They compare every response byte for byte, except for its ID.

mod generator;
pub(crate) mod http;
pub(crate) mod lines;
pub(crate) mod paced;
pub(crate) mod stdio;
pub(crate) mod talk;

use generator::{Expected, template};
pub(crate) use generator::{Generator, Loaded};
