//! Tokens of the gateway at its upstreams, and those of its principals.
//!
//! - `sources`: the token source of an upstream connection.
//! - `entries`: tokens and logins as sealed entries of the store, which all replicas share.
//! - `problem`: reasons why a token is missing.

mod entries;
mod problem;
mod sources;

pub(crate) use problem::{needs_login, problem_of};
pub(crate) use sources::{Credentials, Subjects};
