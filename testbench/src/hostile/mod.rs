//! `cargo xtask hostile`: one hostile caller tries to degrade the service of an honest one.
//!
//! Every attack of `hostile/attacks.rs` runs at once, from one core, against `outlive serve` on the
//! other core with a store of many tasks. An honest caller works at another address. The run fails
//! if the honest caller is affected, if the hostile caller reads its result, or if memory, store or
//! processes exceed their limits. It runs on each store, for a hostile caller with a token, and for
//! one without where no token is needed.

mod attacks;
mod caller;
mod campaign;
mod honest;
mod results;
mod server;
mod stored;

pub(crate) use campaign::run;
