//! The handlers of pages: each reads its data through the functions for people, and a page renders
//! it. `respond` is the index of their paths, `visit` one request with its visitor.

mod actions;
mod audit;
mod bulk;
mod inbox;
mod overview;
mod respond;
mod settings;
mod sign_in;
mod tasks;
mod visit;

pub(crate) use respond::respond;
