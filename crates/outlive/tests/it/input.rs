//! Durable handlers with input requests: the same code in both eras.

mod basics; // one handler in both eras
mod beyond_tools; // prompts, resources, explicit rounds, `yield_to_replica`, handler revisions
pub(crate) mod dialogue; // a test client for input requests
mod journal; // the journal, steps and replay
mod legacy; // input requests of waiting legacy calls
mod random_programs; // random programs with random interruptions
mod responses; // input responses
mod security; // sealing of request states
