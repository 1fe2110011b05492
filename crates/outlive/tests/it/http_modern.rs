//! 2026-07-28 over HTTP: responses, streams, headers, subscriptions and cancellation.

mod answers; // JSON bodies and event streams
mod cancel; // cancellation by disconnect
mod eras; // detection of the era of a request
mod headers; // headers that mirror the body
mod listen; // `subscriptions/listen`
mod readers; // clients that do not read
