//! Calls of clients without tasks: the server bridges them.

mod fallback; // the tools `task_result`, `task_cancel` and `task_answer`
mod input; // input requests of bridged calls
mod interrupted; // requests that end while the store records their wait
mod joining; // repeated calls
mod outage; // requests that wait while the store does not respond
mod pending; // legacy clients: waits, progress and pending results
mod results; // results above the limit of the host
mod rounds; // clients of 2026-07-28: empty rounds
mod unchanged; // clients with tasks, and servers without hosts
mod view; // the task view: its page and its calls
mod world; // tools and clients
