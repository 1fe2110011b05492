//! Building and running MCP servers.

mod schema;
mod throttle;
mod uri_template;
