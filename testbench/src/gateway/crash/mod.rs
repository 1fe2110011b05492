//! `cargo xtask crash --gateway`: gateways that are killed and frozen during calls of upstreams.
//!
//! A call of a server on stdio must continue as if nothing had happened, as must a call with an open
//! input request, a task of the upstream, and a stream that can be resumed. Every other call over
//! HTTP must be reported as unknown, and never be executed twice.

mod calls;
mod command;
mod frozen;
mod python;
mod replicas;
mod site;
mod task;
mod upstream;

pub(crate) use command::run;
