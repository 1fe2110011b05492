//! Large results: which part of a result a client gets, and how it reads the rest.
//!
//! - `cut`: shortens a result to a byte limit, with links to the rest; `plan` decides which bytes
//!   stay; `notice` has the texts; `deliver` chooses between the whole result and a cut one.
//! - `range`: the URIs `outlive://results/…` and their ranges; `pointer` and `find` search a body
//!   without loading it; `read` reads a range.
//! - `body`: the parts of a result, in the store or in memory.

pub(crate) mod body;
pub(crate) mod cut;
pub(crate) mod deliver;
pub(crate) mod error;
pub(crate) mod find;
pub(crate) mod notice;
pub(crate) mod plan;
pub(crate) mod pointer;
pub(crate) mod range;
pub(crate) mod read;

#[cfg(test)]
mod tests;
