//! The status of a gateway as data.

use std::{io, path::Path};

use serde::{Deserialize, Serialize};

use super::state::State;

/// Status of a gateway, as in `status.json`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GatewayStatus {
    /// Unix time in milliseconds at which the status was written.
    pub written_at: u64,
    /// Process ID of the gateway.
    pub pid: u32,
    /// Status of each upstream, in file order.
    pub upstreams: Vec<UpstreamStatus>,
}

/// Status of one upstream.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpstreamStatus {
    /// Name of the upstream.
    pub name: String,
    /// Program, or scheme, host and port of the URL.
    pub target: String,
    /// State.
    pub state: State,
    /// Unix time in milliseconds since which the upstream has this state.
    pub since: u64,
    /// Reason of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Unix time in milliseconds before which the gateway makes no attempt to connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt: Option<u64>,
    /// Remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Protocol versions of the open upstream connections.
    #[serde(default)]
    pub protocol_versions: Vec<String>,
    /// Number of tools in the newest catalog.
    pub tools: usize,
    /// Number of prompts in the newest catalog.
    pub prompts: usize,
    /// Number of resources in the newest catalog.
    pub resources: usize,
    /// Number of resource templates in the newest catalog.
    pub templates: usize,
    /// Number of running processes.
    pub processes: usize,
    /// Number of open upstream connections.
    pub connections: usize,
    /// Number of calls that run.
    pub calls_in_flight: usize,
    /// Number of calls since the gateway started.
    pub calls: u64,
    /// Number of these calls that failed between gateway and upstream.
    pub failed_calls: u64,
    /// The last failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Warnings, such as a tool in the settings that the upstream does not list.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Tools whose definition differs from the pinned one.
    #[serde(default)]
    pub changed_tools: Vec<String>,
    /// Last lines of the standard error.
    #[serde(default)]
    pub last_lines: Vec<String>,
}

/// Result of a check of one upstream: it was connected and listed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UpstreamReport {
    /// Name of the upstream.
    pub name: String,
    /// Reason and remedy, if the upstream cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Names of the tools, as clients see them.
    pub tools: Vec<String>,
    /// Status after the check.
    pub status: UpstreamStatus,
}

impl GatewayStatus {
    /// Reads the status that a running gateway wrote. Returns `None` if the file does not exist.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has another format.
    pub fn read(path: impl AsRef<Path>) -> io::Result<Option<Self>> {
        match std::fs::read(path) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
