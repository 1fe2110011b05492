//! Self-description of a server, and the outcome of a handshake with it.

use outlive_wire::{Implementation, ServerCapabilities};
use serde::{Deserialize, Serialize};

/// Self-description of a server. Do not base security decisions on it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerInfo {
    /// Name and version, if the server sends them.
    pub info: Option<Implementation>,
    /// Capabilities that the server declared.
    pub capabilities: ServerCapabilities,
    /// Usage instructions for the model.
    pub instructions: Option<String>,
    /// Whether the server has described itself. A modern server can be used without
    /// `server/discover`.
    pub known: bool,
}

/// Outcome of a handshake. Another process can continue with it on the same pipe; see
/// [`ClientBuilder::restore`](crate::client::ClientBuilder::restore).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Handshake {
    /// Negotiated protocol version.
    pub protocol_version: String,
    /// Name, capabilities and instructions of the server.
    pub server: ServerInfo,
}
