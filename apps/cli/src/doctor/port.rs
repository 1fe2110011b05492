//! Checks that the listen address is free, or which server uses it.

use std::{io, time::Duration};

use outlive::client::Client;
use tokio::{net::TcpListener, time::timeout};

use super::Finding;

const PORT: &str = "port";

/// Maximum time that a server on the port may take to identify itself.
const PATIENCE: Duration = Duration::from_secs(3);

pub(super) async fn check(listen: &str) -> Finding {
    let error = match TcpListener::bind(listen).await {
        Ok(_) => return Finding::ok(PORT, format!("{listen} is free")),
        Err(error) => error,
    };
    match error.kind() {
        io::ErrorKind::AddrInUse => taken(listen).await,
        io::ErrorKind::PermissionDenied => Finding::failure(
            PORT,
            format!("this user has no permission to listen on {listen}"),
            "choose a port of 1024 or above with --listen ADDRESS:PORT",
        ),
        io::ErrorKind::AddrNotAvailable => Finding::failure(
            PORT,
            format!("{listen} is not an address of this machine"),
            "use --listen 127.0.0.1:PORT, or --listen 0.0.0.0:PORT for all addresses",
        ),
        _ => Finding::failure(
            PORT,
            format!("cannot listen on {listen}: {error}"),
            "use --listen ADDRESS:PORT, such as 127.0.0.1:8000",
        ),
    }
}

/// Identifies the server on the port. It may be the server that the user checks.
async fn taken(listen: &str) -> Finding {
    // A server that listens on all addresses is reachable at the loopback address.
    let reached = listen.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:");
    let asked = async {
        let client = Client::builder("outlive-doctor", env!("CARGO_PKG_VERSION"));
        let client = client.connect(format!("http://{reached}/mcp").as_str()).await.ok()?;
        let server = client.server_info().await.ok();
        client.close().await;
        server?.info
    };
    match timeout(PATIENCE, asked).await {
        Ok(Some(server)) => Finding::warning(
            PORT,
            format!("{listen} is in use by the MCP server {} {}", server.name, server.version),
            "ignore this if it is your server; else stop it, or choose another port with --listen ADDRESS:PORT",
        ),
        _ => Finding::failure(
            PORT,
            format!("{listen} is in use by a program that is not an MCP server"),
            "stop that program, or choose another port with --listen ADDRESS:PORT",
        ),
    }
}
