//! Campaigns against the gateway: hostile upstreams, isolation of principals, restarts, crashes.
//!
//! All of them start the program `outlive` in front of real upstream processes.

mod crash;
mod hostile;
mod isolation;
mod restarts;
mod serving;
mod setting;

pub(crate) use crash::run as crash;
pub(crate) use hostile::run as hostile;
pub(crate) use isolation::run as isolation;
pub(crate) use restarts::run as restarts;
