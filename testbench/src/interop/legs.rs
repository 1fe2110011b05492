//! The pairs of peers, transports and versions.

use std::fmt;

/// The tested features, in the order of the table.
pub(super) const FEATURES: [&str; 13] = [
    "tools",
    "resources",
    "prompts",
    "completion",
    "logging",
    "progress",
    "elicitation",
    "sampling",
    "roots",
    "tasks",
    "cancel",
    "listen",
    "resumption",
];

pub(super) const LEGACY: &str = "2025-11-25";
pub(super) const MODERN: &str = "2026-07-28";

/// The versions before [`LEGACY`], which only lack features.
const OLDER: [&str; 3] = ["2024-11-05", "2025-03-26", "2025-06-18"];

/// A third-party implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    TsServer,
    EverythingServer,
    PythonServer,
    FastMcpServer,
    RmcpServer,
    TsClient,
    ExtTasks,
    Inspector,
    PythonClient,
    FastMcpClient,
    RmcpClient,
}

/// The runtime of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Node,
    /// Python with the packages of this requirements file.
    Python(&'static str),
    /// A program of `peers`.
    Rust,
}

/// The role of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Stdio,
    Http,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) peer: Peer,
    pub(super) transport: Transport,
    pub(super) era: &'static str,
}

const PEERS: [Peer; 11] = [
    Peer::TsServer,
    Peer::EverythingServer,
    Peer::PythonServer,
    Peer::FastMcpServer,
    Peer::RmcpServer,
    Peer::TsClient,
    Peer::ExtTasks,
    Peer::Inspector,
    Peer::PythonClient,
    Peer::FastMcpClient,
    Peer::RmcpClient,
];

pub(super) fn all() -> Vec<Leg> {
    let mut all = Vec::new();
    for peer in PEERS {
        for transport in [Transport::Stdio, Transport::Http] {
            for era in OLDER.into_iter().chain([LEGACY, MODERN]) {
                let leg = Leg { peer, transport, era };
                if peer.plays(leg) {
                    all.push(leg);
                }
            }
        }
    }
    all
}

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TsServer => "@modelcontextprotocol/server 2.4.0",
            Self::EverythingServer => "@modelcontextprotocol/server-everything 2026.8.31",
            Self::TsClient => "@modelcontextprotocol/client 2.4.0",
            Self::ExtTasks => "@modelcontextprotocol/ext-tasks 0.2.2",
            Self::Inspector => "@modelcontextprotocol/inspector 2.12.0, `--cli`",
            Self::PythonClient => "Python `mcp` 2.3.0, client",
            Self::PythonServer => "Python `mcp` 2.3.0, server",
            Self::FastMcpServer => "FastMCP 4.1.4 with `fastmcp-tasks` 4.1.4",
            Self::FastMcpClient => "FastMCP 4.1.4 with `fastmcp-tasks` 4.1.4, client",
            Self::RmcpServer => "rmcp 3.8.0, server",
            Self::RmcpClient => "rmcp 3.8.0, client",
        }
    }

    pub(super) fn side(self) -> Side {
        match self {
            Self::TsServer
            | Self::EverythingServer
            | Self::PythonServer
            | Self::FastMcpServer
            | Self::RmcpServer => Side::Server,
            _ => Side::Client,
        }
    }

    /// Whether the peer needs only cargo and the dependencies of the other test steps.
    pub(super) fn is_short(self) -> bool {
        !matches!(self.host(), Host::Python(_))
    }

    /// The profile of `interop-client` for this peer.
    pub(super) fn profile(self) -> &'static str {
        match self {
            Self::EverythingServer => "everything",
            _ => "ours",
        }
    }

    /// The script in `conformance/interop`, or the program of `peers`.
    pub(super) fn script(self) -> &'static str {
        match self {
            Self::TsServer | Self::EverythingServer => "server.mjs",
            Self::TsClient => "client.mjs",
            Self::ExtTasks => "tasks.mjs",
            Self::Inspector => "inspector.mjs",
            Self::PythonClient => "client.py",
            Self::PythonServer => "server.py",
            Self::FastMcpServer => "fastmcp_server.py",
            Self::FastMcpClient => "fastmcp_client.py",
            Self::RmcpServer => "rmcp-server",
            Self::RmcpClient => "rmcp-client",
        }
    }

    pub(super) fn host(self) -> Host {
        match self {
            Self::PythonClient | Self::PythonServer => Host::Python("requirements-mcp.txt"),
            Self::FastMcpServer | Self::FastMcpClient => Host::Python("requirements-fastmcp.txt"),
            Self::RmcpServer | Self::RmcpClient => Host::Rust,
            _ => Host::Node,
        }
    }

    /// The features of the peer; `None` for all.
    pub(super) fn subject(self) -> Option<&'static [&'static str]> {
        match self {
            Self::ExtTasks => Some(&["tasks"]),
            _ => None,
        }
    }

    fn plays(self, leg: Leg) -> bool {
        let is_older = OLDER.contains(&leg.era);
        match self {
            // Based on the first major version of the SDK, which ends with 2025-11-25.
            Self::EverythingServer => leg.era == LEGACY,
            // Its host must connect it to a server of 2026-07-28; ours uses HTTP.
            Self::ExtTasks => leg.transport == Transport::Http && !is_older,
            // One peer is enough for the older versions: this one supports them all.
            Self::RmcpServer => true,
            _ => !is_older,
        }
    }
}

impl Leg {
    pub(super) fn side(&self) -> Side {
        self.peer.side()
    }

    /// The arguments for a server on stdio.
    pub(super) fn stdio(&self) -> &'static [&'static str] {
        match self.peer {
            Peer::EverythingServer => &["stdio"],
            _ => &["--stdio"],
        }
    }

    /// Whether the feature exists on this leg.
    pub(super) fn has(&self, feature: &str) -> bool {
        let subject = self.peer.subject().is_none_or(|it| it.contains(&feature));
        let fits = match feature {
            // Introduced with 2025-11-25.
            "tasks" => !OLDER.contains(&self.era),
            // Streamable HTTP has it from 2025-03-26 on, and no longer in 2026-07-28.
            "resumption" => {
                self.transport == Transport::Http && !["2024-11-05", MODERN].contains(&self.era)
            }
            _ => true,
        };
        subject && fits
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
        })
    }
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}", self.peer.name(), self.transport, self.era)
    }
}
