//! Host, Origin, CORS, tokens and addresses.

mod addresses; // where a server listens, and to whom
mod browsers; // Host, Origin, CORS
mod callers; // authenticators
mod connections; // how many, how slow, and how much they leave unread
mod pages; // health checks and metrics
mod token_file; // names and tokens from a file
