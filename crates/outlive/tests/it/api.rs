//! The API from the point of view of a new user: each test is code that such a user expected to
//! compile.

mod clones;
mod errors;
mod retries;
mod small;
mod test_kit;
