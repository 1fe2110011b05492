//! A raw HTTP/1.1 client, and a server for it.
//!
//! The client sends exactly the bytes of a test and does not retry, redirect or correct anything.
//! It validates every message against its schema.

mod client;
mod clock;
mod pair;
mod request;
mod server;
mod sse;
mod tools;

use std::{future::Future, time::Duration};

pub(crate) use client::{Connection, Response, Stream};
pub(crate) use clock::ManualClock;
pub(crate) use request::{MODERN, Request, Session};
pub(crate) use server::HttpFixture;
pub(crate) use sse::{Event, Piece};
pub(crate) use tools::{World, standard};

/// Awaits a future, but only for a limited time.
#[track_caller]
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(Duration::from_secs(10), future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller}: no progress for 10 seconds"),
        }
    }
}
