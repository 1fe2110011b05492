//! Behaviour of servers, bytes in and bytes out.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over a `json!` where they write it")]

mod fuzz_corpus; // what fuzzing started from or found
mod support; // clients made of bytes, and the schemas that check what comes back

// Over HTTP.
mod http_bad_input; // every row of bad input, with its status and code
mod http_guard; // Host, Origin, CORS, tokens, addresses
mod http_legacy; // handshake, sessions, GET, DELETE, batches, isolation
mod http_modern; // answers, streams, headers, cancellation by disconnect
mod http_mounted; // a server inside an application of others
mod http_replicas; // legacy sessions that several processes know
mod http_resume; // streams that were cut, and the calls that went on
mod http_shutdown; // ending properly
mod http_sse; // the HTTP+SSE pair of 2024-11-05

// Over pipes.
mod pipe_bad_input; // lines that are no messages
mod pipe_eras; // both eras on one pipe, the handshakes of all revisions

// What the server API promises, on whatever transport.
mod api; // what the first user of the crate wrote
mod caching; // ttl and scope
mod cancel; // cancellation and what it spares
mod completion; // suggestions
mod dynamic; // adding, changing, removing while running; who is told
mod errors; // tool errors, refusals, panics
mod limits; // rates, concurrency, sizes
mod limits_page; // what docs/limits.md says of them
mod logging; // levels, eras
mod low_level; // own methods, notifications, extensions, layers
mod paging; // cursors
mod progress; // tokens, order, rate
mod prompts; // arguments, messages
mod questions; // asking the client, on every wire
mod resources; // contents, templates, subscriptions
mod shape; // what older revisions are spared
mod skills; // instructions for agents, in folders
mod streaming; // what is told while it grows
mod tasks; // what outlives its request
mod tools; // arguments, results, schemas, headers
mod visibility; // what a caller sees

// The client, against our own server and against peers that are scripts.
mod client;
