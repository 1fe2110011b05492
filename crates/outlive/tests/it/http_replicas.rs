//! Legacy sessions of several replicas on one store.

mod answers; // input responses that reach another replica
mod outage; // an unavailable store
mod sessions; // sessions used and ended on several replicas
mod tasks; // tasks of one client on several replicas
mod world; // replicas, and a store that can be switched off
