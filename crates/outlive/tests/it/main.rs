//! Tests of the public API: servers and clients, mostly at the level of messages and bytes.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over a `json!` where they write it")]

mod fuzz_corpus; // replay of the fuzzing corpus
mod support; // test clients, proxies and schema validation

// Over HTTP.
mod host_settings; // settings for clients without tasks
mod http_bad_input; // invalid input, with status and error code
mod http_guard; // `Host`, `Origin`, CORS, tokens, addresses
mod http_legacy; // handshake, sessions, GET, DELETE, batches, isolation
mod http_modern; // responses, streams, headers, cancellation by disconnect
mod http_mounted; // a server inside another application
mod http_replicas; // legacy sessions on several replicas
mod http_resume; // resumption of streams
mod http_shutdown; // graceful shutdown
mod http_sse; // the HTTP+SSE transport of 2024-11-05

// Over pipes.
mod pipe_bad_input; // lines that are not valid messages
mod pipe_eras; // both eras on one pipe, handshakes of all versions

// The server API, on any transport.
mod api; // ergonomics of the API
mod approvals; // calls that wait for the approval of people
mod caching; // TTL and scope of cache hints
mod cancel; // cancellation
mod catalog; // items that depend on the call, results of other servers
mod completion; // completion of arguments
mod dynamic; // entries added, changed and removed at run time
mod errors; // tool errors, protocol errors, panics
mod hosts; // calls of clients without tasks
mod input; // input requests and durable calls, in both eras
mod limits; // rate limits, concurrency limits
mod limits_page; // docs/limits.md against the code
mod logging; // log levels in both eras
mod low_level; // custom methods, notifications, extensions, layers
mod metrics_page; // docs/metrics.md against the code
mod notifications; // notifications of events of tasks
mod paging; // pagination cursors
mod people; // functions behind the console, its API and the command line
mod progress; // progress tokens, order, rate
mod prompts; // arguments, messages
mod resources; // contents, templates, subscriptions
mod shape; // results and lists in the shape of each version
mod skills; // skills from folders
mod streaming; // partial results
mod tasks; // tasks
mod tools; // arguments, results, schemas, headers
mod visibility; // which tools, resources and prompts a caller sees

// The client, against our server and against scripted peers.
mod client;
