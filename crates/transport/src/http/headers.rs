//! Names of headers that MCP defines.

use http::HeaderName;

/// ID of the session of a legacy request.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
