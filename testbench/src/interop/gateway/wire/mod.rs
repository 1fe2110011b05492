//! The messages on both connections of the gateway.
//!
//! `tap` is a TCP proxy for HTTP, `http` reads its bytes, and `log` reads the file of the program
//! `wire-tap`, which is between the gateway and an upstream on stdio.

mod http;
mod log;
mod seen;
mod tap;

pub(super) use log::StdioLog;
pub(super) use seen::{Seen, Sender};
pub(super) use tap::HttpTap;
