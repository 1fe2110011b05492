//! Items that depend on the call, and results of other servers.

mod changes; // notifications for some principals, subscribed resources
mod gated; // approvals, tasks, clients without tasks
mod input; // input requests whose responses are not read
mod items; // tools, prompts, resources and completion of a catalog
mod lists; // pages, precedence, capabilities
mod parking; // runs that hold something open
mod results; // members that pass, and those that a version lacks
mod world; // a catalog
