//! The approval gate: a call waits for the decision of people before its handler starts.
//!
//! - `policy`: the rule of a tool, and the calls that it covers; `binding`: what an approval covers.
//! - `start`: creates the task of a gated call; `places`: the limit of undecided calls.
//! - `decision`: the response to an approval request; `denial`: standing denials.
//! - `pass`: decides whether a claimed task may start; `wait`: a request that waits for an undecided
//!   call; `text`: the texts for the model.

pub(crate) mod binding;
pub(crate) mod decision;
pub(crate) mod denial;
pub(crate) mod pass;
pub(crate) mod places;
pub(crate) mod policy;
pub(crate) mod start;
pub(crate) mod text;
pub(crate) mod wait;
