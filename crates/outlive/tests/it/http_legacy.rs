//! Legacy versions over HTTP: handshake, sessions, GET, DELETE, batches and isolation.

mod answers; // JSON bodies, streams and cancellation
mod batches; // batches of 2025-03-26
mod changes; // GET streams with change notifications
mod handshake; // `initialize` in each version
mod isolation; // isolation of two principals
mod sessions; // opening, idle timeout, ending and limits
mod stateless; // legacy clients without sessions
