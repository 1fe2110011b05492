//! Answers, streams, headers and cancellation by disconnect on 2026-07-28.

mod answers; // one JSON body, or a stream of events
mod cancel; // closing the connection is how a call is cancelled
mod eras; // which rules a request is under
mod headers; // headers that repeat the body
mod listen; // `subscriptions/listen`
mod readers; // one who does not read beside one who does
