//! A raw HTTP/1.1 client, and a server to point it at.
//!
//! Bytes go out as a test writes them and come in as the server wrote them: nothing is retried,
//! followed or corrected. Every message that is read is held against its schema.

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

/// Waits for something that must happen, but not for ever.
#[track_caller]
pub(crate) fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(Duration::from_secs(10), future).await {
            Ok(output) => output,
            Err(_) => panic!("{caller}: nothing happened for 10 seconds"),
        }
    }
}
