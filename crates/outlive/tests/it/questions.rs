//! Handlers that ask: the same code on every wire.

mod answers; // what clients answer, and what becomes of it
mod basics; // one handler on every wire
pub(crate) mod dialogue; // a client that answers as a test wants it
mod elsewhere; // prompts, resources, the explicit style, shedding, upgrades
mod journal; // what a run records, and what the next one reads back
mod legacy; // questions as requests, while the call waits
mod random_programs; // interrupted in random ways
mod security; // what a state is bound to
