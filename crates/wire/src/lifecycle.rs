//! Connection setup: `initialize` in legacy versions, `server/discover` in 2026-07-28.

use serde::{Deserialize, Serialize};

use crate::{ClientCapabilities, Implementation, Meta, ServerCapabilities};

/// The parameters of `initialize`; legacy versions only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeRequestParams {
    /// Newest protocol version that the client supports.
    pub protocol_version: String,
    /// Capabilities of the client.
    pub capabilities: ClientCapabilities,
    /// Name and version of the client.
    pub client_info: Implementation,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of `initialize`; legacy versions only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// Negotiated protocol version.
    pub protocol_version: String,
    /// Capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// Name and version of the server.
    pub server_info: Implementation,
    /// Instructions for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}

/// The result of `server/discover`; 2026-07-28. The server info is in `_meta`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoverResult {
    /// Protocol versions that the server supports.
    pub supported_versions: Vec<String>,
    /// Capabilities of the server.
    pub capabilities: ServerCapabilities,
    /// Instructions for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Metadata (`_meta`).
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Meta>,
}
