//! What a run records, and what the next one reads back.

mod blocks; // partial results
mod drift; // handlers that have changed, or change their mind
mod keys; // names, and where they may be used
mod kit; // the author's test kit
mod sizes; // how much a journal holds, and what it never does
mod steps; // done once, recorded, tried again
mod time; // timers and deadlines
