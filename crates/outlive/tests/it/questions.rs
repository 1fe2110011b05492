//! Handlers that ask: the same code on every wire.

mod basics; // one handler on every wire
mod random_programs;
mod security; // what a state is bound to // interrupted in random ways
