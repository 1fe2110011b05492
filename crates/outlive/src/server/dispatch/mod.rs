//! Layer 8: routes a request to the handler of its method.
//!
//! - `service`: the server as transports use it; `layer`: tower layers around every call, and
//!   `innermost`: the router under them.
//! - `router`: the index of all methods; `core`: the parts of a running server.
//! - `tools`, `prompts`, `resources`, `completion`, `lists`, `subscriptions`, `skills`: lookup,
//!   access and validation for each method; `listed`: the kinds of items in lists.
//! - `fallback_tools`, `fallback_answer`, `fallback_task`: the tools for clients without tasks; `results`: the rest of
//!   results that were cut for them.
//! - `view_poll`: `task_result` as the task view calls it.
//! - `custom`: methods of the application; `sessions`: changes of legacy sessions.
//! - `resume`: restores the call of a stored task; `find`: items for a call.

pub(crate) mod completion;
pub(crate) mod core;
pub(crate) mod custom;
pub(crate) mod fallback_answer;
pub(crate) mod fallback_task;
pub(crate) mod fallback_tools;
mod find;
#[cfg(feature = "tower")]
mod innermost;
#[cfg(feature = "tower")]
pub(crate) mod layer;
#[cfg(not(feature = "tower"))]
#[path = "no_layer.rs"]
pub(crate) mod layer;
pub(crate) mod listed;
pub(crate) mod lists;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod results;
pub(crate) mod resume;
pub(crate) mod router;
pub(crate) mod service;
pub(crate) mod sessions;
#[cfg(feature = "skills")]
pub(crate) mod skills;
pub(crate) mod subscriptions;
pub(crate) mod tools;
pub(crate) mod view_poll;

#[cfg(feature = "tower")]
pub(crate) use innermost::stack;
#[cfg(not(feature = "tower"))]
pub(crate) use layer::stack;
