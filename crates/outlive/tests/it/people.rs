//! Functions for people: inbox, decisions, tasks, bulk actions, links, audit log.

mod answers; // votes and input responses
mod audit; // the audit log, newest first
mod bulk; // bulk actions
mod contents; // secrets, and contents that only owners see
mod links; // answer links for people
mod rerun; // tasks that run again
mod roles; // every function for every role
mod world; // people, tasks and a server
