//! `cargo xtask hostile`: one hostile caller tries to take the server from an honest one.
//!
//! Every attack of `hostile/attacks.rs` runs at once, from one core, against `outlive serve` on the
//! other core with a store that has many tasks. An honest caller at another address works meanwhile.
//! The run fails if the honest caller notices, or if memory, store or processes grow beyond their
//! limits. It is done for a hostile caller with a token, and for one without where no token is
//! needed, on each store.

mod attacks;
mod caller;
mod campaign;
mod honest;
mod server;

pub(crate) use campaign::run;
