//! A gateway between real clients and real upstreams.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod calls; // tools of every protocol version, over HTTP and stdio
mod input; // input requests across the eras
mod isolation; // principals and their upstream connections
mod lists; // names, pages, filters, changes, search
mod processes; // upstreams that exit, hang and flood
mod resources; // resources, prompts, completion
mod settings; // policies of tools, reload, status
mod support;
