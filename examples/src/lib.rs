//! Shared code of the example servers: command line and transports.

mod serving;

pub use serving::{Arguments, serve};
