//! The measured servers: `bench serve NAME`. All have one worker thread.

mod asking;
mod command;
mod control_http;
mod control_stdio;
mod control_streams;
mod control_tasks;
mod growth;
mod library_gateway;
mod lifecycle;
mod progress;
mod setting;
mod soak;
mod streams;
mod tasks;
mod tokens;

pub(crate) use command::run;
pub(crate) use lifecycle::fill;
pub(crate) use setting::runtime;
use setting::{say, unlimited};
