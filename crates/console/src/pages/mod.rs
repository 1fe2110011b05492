//! One file for each page: its data as a struct, and the function that renders it.
//!
//! Pages are pure functions. `context` has the parts that depend on the visitor, `plain` those of
//! pages without a visitor, `state` the badge of a task, `request` the part that the input request
//! page and the answer page share.

pub(crate) mod answer;
pub(crate) mod audit;
pub(crate) mod bulk;
pub(crate) mod confirm;
pub(crate) mod context;
pub(crate) mod error;
pub(crate) mod inbox;
pub(crate) mod input_request;
pub(crate) mod overview;
pub(crate) mod plain;
pub(crate) mod request;
pub(crate) mod settings;
pub(crate) mod sign_in;
mod state;
pub(crate) mod task;
pub(crate) mod tasks;
#[cfg(test)]
pub(crate) mod testing;
