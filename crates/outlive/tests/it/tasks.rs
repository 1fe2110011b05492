//! Tools that run as tasks, in both eras.

mod abandoned; // bridged tasks whose client left
mod audience; // the sources that may respond to an input request
mod budget; // stored bytes per caller, and rejected requests that store nothing
mod cleanup; // cleanup after cancelled and expired tasks
mod crashes; // crashes at every store operation
mod dialects; // responses by version and declared capabilities
mod drain; // graceful shutdown releases tasks to other replicas
mod full; // callers at their limit of stored bytes
mod legacy; // tasks of 2025-11-25
mod legacy_rules; // rules of the specification for 2025-11-25
mod listing; // `tasks/list`
mod modern; // the task extension of 2026-07-28
mod modern_rules; // rules of the specification for 2026-07-28
mod offloaded; // offloaded journals
mod once; // idempotency keys and `step_once`
mod operating; // the operator API
mod outside; // external events
mod peers; // quotas per network address
mod permits; // concurrency permits
mod promotion; // promotion of inline calls
mod races; // races between two operations
mod replays; // replays within a run, recorded steps, incompatible entries
mod stage; // replicas over one store, and tools with gates
mod stopping; // cancellation of running tasks
mod takeover; // tasks that another process continues
mod watched; // audit log, metrics and rate limits
mod world; // tools and clients for the task tests
