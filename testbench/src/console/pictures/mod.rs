//! `cargo xtask console --pictures FOLDER`: the pictures of the documentation, light and dark.
//!
//! The pictures show the console of a small shop on a real server. `approvals` has the calls that the server receives,
//! `tasks` and `migration` the tasks of other workers, `day` the counts of 24 hours, and `workers` the machines. A store
//! writes only the present, so `past` moves the tasks back in time. `conformance/console/pictures.mjs` has the browser.

mod approvals;
mod day;
mod migration;
mod past;
mod take;
mod tasks;
mod workers;

pub(super) use take::run;
