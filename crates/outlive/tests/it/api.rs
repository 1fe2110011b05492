//! The API as its first user wrote against it: each test is code that user expected to compile and work.

mod clones;
mod errors;
mod retries;
mod small;
mod test_kit;
