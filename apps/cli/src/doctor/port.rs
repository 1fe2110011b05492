//! Where a server is to listen: free, or taken, and by whom.

use std::{io, time::Duration};

use outlive::client::Client;
use tokio::{net::TcpListener, time::timeout};

use super::Finding;

const PORT: &str = "port";

/// How long whoever is there may take to say who it is.
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
            format!("this user may not listen at {listen}"),
            "--listen ADDRESS:PORT with a port of 1024 or above",
        ),
        io::ErrorKind::AddrNotAvailable => Finding::failure(
            PORT,
            format!("{listen} is no address of this machine"),
            "--listen 127.0.0.1:PORT, or 0.0.0.0:PORT for all of them",
        ),
        _ => Finding::failure(
            PORT,
            format!("cannot listen at {listen}: {error}"),
            "--listen ADDRESS:PORT, such as 127.0.0.1:8000",
        ),
    }
}

/// Who listens there may be the server that this is about.
async fn taken(listen: &str) -> Finding {
    // Who listens everywhere is asked here.
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
            format!("{listen} is taken by the MCP server {} {}", server.name, server.version),
            "nothing if it is this one; else stop it, or --listen ADDRESS:PORT for another port",
        ),
        _ => Finding::failure(
            PORT,
            format!("{listen} is taken by a program that does not answer as an MCP server"),
            "stop it, or --listen ADDRESS:PORT for another port",
        ),
    }
}
