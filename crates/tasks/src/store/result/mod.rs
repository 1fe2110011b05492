//! Large results: a result of more than 64 KiB is stored in result parts.
//!
//! The outcome column keeps a small [`LargeResult`]: the result with empty placeholders, and one
//! [`StoredBlock`] per removed body. The bodies are rows of `result_part`, cut into parts of
//! [`PART_BYTES`], so reading 64 KiB of a 5 MB result loads at most two parts. Part numbers and byte
//! positions convert into each other without an index. Smaller results stay whole in the outcome
//! column: they need one read either way.
//!
//! Emitted content is stored twice: each segment as `{"type":"text","text":"…"}` with its scope, and
//! all texts together in the result. A line of 60 bytes of a command takes 90 bytes as a segment, and
//! 64 bytes in a large result (86 bytes in a small one). Neither copy can refer to the other. A range
//! needs parts of equal size, and segments differ in size and have JSON escapes. Segments are written
//! while the task runs, before the result exists. They stay after its end, because a reader can
//! continue at a number, and because they are the only copy if the result exceeds the byte limit or
//! its parts are evicted.
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
