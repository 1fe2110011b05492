//! Handshake, sessions, GET, DELETE, batches and isolation of the revisions before 2026-07-28.

mod answers; // one JSON body, or a stream; cancellation
mod batches; // several messages in one, on 2025-03-26
mod changes; // GET: the stream of changes
mod handshake; // `initialize`, revision by revision
mod isolation; // two callers and what each may know of the other
mod sessions; // opening, idling, ending; as many as there may be
mod stateless; // without sessions
