//! Durable handlers with input requests: the same code in both eras.

mod answers; // input responses
mod basics; // one handler in both eras
pub(crate) mod dialogue; // a test client for input requests
mod elsewhere; // prompts, resources, explicit rounds, `yield_to_replica`, handler revisions
mod journal; // the journal, steps and replay
mod legacy; // input requests of waiting legacy calls
mod random_programs; // random programs with random interruptions
mod security; // sealing of request states
