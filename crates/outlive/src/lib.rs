//! MCP servers whose work outlives the request.

pub mod server;
