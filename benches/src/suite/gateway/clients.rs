//! The requests of clients of either era, to a gateway or to a server.

use std::net::SocketAddr;

use anyhow::{Result, ensure};

use crate::{
    load::http::{connect, exchange},
    messages::{INITIALIZE, INITIALIZED, http_request, legacy_call, modern_call},
};

/// Connections to each target.
pub(super) const CONNECTIONS: usize = 32;

/// The era of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    Modern,
    Legacy,
}

/// Returns the call of each connection. A legacy client has a session, if the server opens one.
pub(super) fn requests(
    era: Era,
    address: SocketAddr,
    path: &str,
    tool: &str,
) -> Result<Vec<Vec<u8>>> {
    let named = |call: String| call.replace(r#""name":"echo""#, &format!(r#""name":"{tool}""#));
    match era {
        Era::Modern => {
            let headers = [
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", tool),
            ];
            let request = http_request("POST", path, &headers, &named(modern_call()));
            Ok(vec![request; CONNECTIONS])
        }
        Era::Legacy => {
            let session = |_| {
                let session = open_session(address, path)?;
                let headers = session_headers(session.as_deref());
                anyhow::Ok(http_request("POST", path, &headers, &named(legacy_call())))
            };
            (0..CONNECTIONS).map(session).collect()
        }
    }
}

fn session_headers(session: Option<&str>) -> Vec<(&str, &str)> {
    let mut headers = vec![("mcp-protocol-version", "2025-11-25")];
    headers.extend(session.map(|session| ("mcp-session-id", session)));
    headers
}

/// Performs the handshake and returns the session, if the server opens one.
fn open_session(address: SocketAddr, path: &str) -> Result<Option<String>> {
    let mut stream = connect(address)?;
    let answer = exchange(&mut stream, &http_request("POST", path, &[], INITIALIZE))?;
    ensure!(answer.status == 200, "the handshake got {}: {}", answer.status, answer.text());
    let session = answer.header("mcp-session-id");
    let headers = session_headers(session.as_deref());
    // Some servers close the connection of a handshake.
    let request = http_request("POST", path, &headers, INITIALIZED);
    let noted = exchange(&mut connect(address)?, &request)?;
    ensure!(matches!(noted.status, 200..=204), "`initialized` got {}", noted.status);
    Ok(session)
}
