//! The path of a call through the gateway: from the server's handler to the upstream and back.
//!
//! - `tool`, `prompt`, `resource`, `completion`: the handlers; `route`: what a handler knows of its
//!   upstream.
//! - `rounds`: a call until its result, with the rounds of modern upstreams; `exchange`: one request
//!   with its events; `carry`: input requests of legacy upstreams.
//! - `meta`: `_meta` of requests; `uris`: URIs in results; `failure`: error texts.

mod carry;
mod completion;
mod exchange;
mod failure;
mod join;
mod meta;
mod prompt;
mod resource;
mod rounds;
mod route;
mod tool;
mod uris;

pub(crate) use completion::{CompletionRoute, complete};
pub(crate) use failure::of_problem as problem_text;
pub(crate) use prompt::{PromptRoute, get_prompt};
pub(crate) use resource::read_resource;
pub(crate) use route::Route;
pub(crate) use tool::{CALL_TOOL, Inner, ToolRoute, call_tool};
pub(crate) use uris::own as own_uri;
