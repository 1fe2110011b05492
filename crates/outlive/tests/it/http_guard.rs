//! Host and origin checks, CORS, authentication, addresses and connection limits.

mod addresses; // listen addresses
mod browsers; // `Host`, `Origin` and CORS
mod callers; // authenticators
mod connections; // connection limits, slow and non-reading clients
mod pages; // health checks and metrics
mod token_file; // principals and tokens from a file
