//! The path of a call through the gateway: from the server's handler to the upstream and back.
//!
//! - `tool`, `prompt`, `resource`, `completion`: the handlers; `route`: what a handler knows of its
//!   upstream.
//! - `call`: a call with its measurements (`times`).
//! - `rounds`: a call until its result, with the rounds of modern upstreams; `exchange`: one request
//!   with its events; `carry`, `input_keys`: input requests of legacy upstreams.
//! - `journal`: what survives a crash of the gateway; `tracker`: records it while a request is open;
//!   `resume`: what a later run does with it; `cleanup`: what a cancelled task does with it.
//! - `upstream_task`: tasks of upstreams, with `task_requests`, `task_inputs`, `task_status`,
//!   `segments` and `outage`.
//! - `place`: the place of a call on a connection; `meta`: `_meta` of requests; `uris`: URIs in
//!   results; `failure`: error texts.
//! - `access`: the token of a call; `connect`: logins of users.

mod access;
mod call;
mod carry;
mod cleanup;
mod completion;
mod connect;
mod ended;
mod exchange;
mod failure;
mod input_keys;
mod join;
mod journal;
mod meta;
mod outage;
mod place;
mod prompt;
mod resource;
mod resume;
mod rounds;
mod route;
mod segments;
mod survival;
mod task_inputs;
mod task_requests;
mod task_status;
mod times;
mod tool;
mod tracker;
mod upstream_task;
mod uris;

pub(crate) use cleanup::clean_up;
pub(crate) use completion::{CompletionRoute, complete};
pub(crate) use connect::{agrees, missing_login};
pub(crate) use failure::of_problem as problem_text;
pub(crate) use journal::CallPolicy;
pub(crate) use meta::{is_loop, own_members};
pub(crate) use prompt::{PromptRoute, get_prompt};
pub(crate) use resource::read_resource;
pub(crate) use route::Route;
pub(crate) use tool::{CALL_TOOL, Inner, ToolRoute, call_tool};
pub(crate) use uris::own as own_uri;
