//! Layer 8: from a method to its handler.
//!
//! - `service`: the server as transports see it; `layer`: tower layers around every call.
//! - `router`: the index of all methods; `core`: the server at work.
//! - `tools`, `prompts`, `resources`, `completion`, `lists`, `subscriptions`, `skills`: look-up,
//!   access and validation of each method.
//! - `custom`: methods of the application; `sessions`: changes of legacy sessions.
//! - `resume`: how a task resumes as the call it was.

pub(crate) mod completion;
pub(crate) mod core;
pub(crate) mod custom;
pub(crate) mod layer;
pub(crate) mod lists;
pub(crate) mod prompts;
pub(crate) mod resources;
pub(crate) mod resume;
pub(crate) mod router;
pub(crate) mod service;
pub(crate) mod sessions;
#[cfg(feature = "skills")]
pub(crate) mod skills;
pub(crate) mod subscriptions;
pub(crate) mod tools;
