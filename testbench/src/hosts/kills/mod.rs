//! Timeouts, repeated calls and `kill -9` of the server while bridged calls wait.
//!
//! A run is one call that its client repeats until it has the result. An interruption is *inside* if
//! the store has the task and the client has no reply: from the promoting commit until the reply is
//! flushed. Such a run executes its command once. Earlier and later interruptions are counted apart.

mod campaign;
mod client;
mod commits;
mod site;

pub(super) use campaign::run;
