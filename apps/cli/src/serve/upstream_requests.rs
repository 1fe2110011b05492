//! Requests of `outlive upstreams` to a running server: files in its data folder, which only its user
//! can access. They work for every way to authenticate callers.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{call::private_file::write_private, paths};
use serde::{Deserialize, Serialize};

/// Poll interval of a reply.
const LOOK: Duration = Duration::from_millis(50);

/// A request to a running server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub(crate) enum UpstreamRequest {
    /// Ends the process of an upstream after its calls, and allows the next start at once.
    Restart { upstream: String },
    /// Accepts the changed definitions of one tool, or of all tools.
    Accept { upstream: String, tool: Option<String> },
}

/// Reply to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpstreamReply {
    /// Tools whose definitions were accepted.
    pub(crate) tools: Vec<String>,
}

/// Returns the folder with requests.
pub(super) fn folder(data: &Path) -> PathBuf {
    data.join("upstream-requests")
}

/// Sends a request to the server with a data folder. Returns `None` if the server did not reply.
pub(crate) async fn send(
    data: &Path,
    request: &UpstreamRequest,
    timeout: Duration,
) -> io::Result<Option<UpstreamReply>> {
    let folder = folder(data);
    paths::make_private(&folder)?;
    let id = getrandom::u64().map_err(io::Error::other)?;
    let (asked, replied) =
        (folder.join(format!("{id:016x}.request")), folder.join(format!("{id:016x}.reply")));
    write_private(&asked, &serde_json::to_vec(request)?)?;
    let read = async {
        loop {
            match fs::read(&replied) {
                Ok(reply) => return reply,
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    };
    let reply = tokio::time::timeout(timeout, read).await;
    let _ = fs::remove_file(if reply.is_ok() { &replied } else { &asked });
    reply.ok().map(|reply| Ok(serde_json::from_slice(&reply)?)).transpose()
}
