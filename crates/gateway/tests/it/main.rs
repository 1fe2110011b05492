//! A gateway between real clients and real upstreams.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod attempts; // calls whose upstream exits or whose server is interrupted, and reruns
mod authority; // an authorization server, and an upstream that accepts its tokens
mod browser; // a browser with cookies
mod calls; // tools of every protocol version, over HTTP and stdio
mod capacity; // limits: places of calls, processes and idle runs
mod credentials; // logins and tokens of the gateway at upstreams
mod each_user; // logins of principals at upstreams
mod exchange; // tokens of principals at upstreams
mod input; // input requests across the eras
mod isolation; // principals and their upstream connections
mod lists; // names, pages, filters, changes, search
mod metrics; // metrics and audit events of calls
mod processes; // upstreams that exit, hang and flood
mod resources; // resources, prompts, completion
mod settings; // policies of tools, reload, status
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../auth/tests/it/support/site.rs"]
mod site; // a scripted web server, shared with the tests of `outlive-auth`
mod streams; // response streams that are resumed, and lost requests
mod subscriptions; // changes of single resources
mod support;
mod surviving; // calls of processes that survive the gateway
mod upstream_tasks; // tasks of upstreams, with their input requests and partial results
