//! Large results: a result of more than 64 KiB is stored in result parts.
//!
//! The outcome column keeps a small [`LargeResult`]: the result with empty placeholders, and one
//! [`StoredBlock`] per removed body. The bodies are rows of `result_part`, cut into parts of
//! [`PART_BYTES`], so reading 64 KiB of a 5 MB result loads at most two parts. Part numbers and byte
//! positions convert into each other without an index. Smaller results stay whole in the outcome
//! column: they need one read either way.
//!
//! - `large`: the types. `split`: removes the bodies of a result. `assemble`: restores the result
//!   byte for byte, for clients with tasks.

mod assemble;
mod large;
mod split;

pub use assemble::{assemble, split_texts};
pub use large::{BlockKind, LargeResult, PART_BYTES, ResultPart, SplitResult, StoredBlock};
pub use split::split;

#[cfg(test)]
mod tests;
