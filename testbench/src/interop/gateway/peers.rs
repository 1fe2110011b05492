//! The packages that play clients and upstreams, with their protocol versions and features.

use super::versions::Version;
use Version::{V24, V26, V503, V506, V511};

/// The runtime of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Host {
    Node,
    /// Python with the packages of this requirements file in `conformance`.
    Python(&'static str),
    /// A program of `peers`.
    Rmcp,
    /// A program of this workspace.
    Outlive,
}

/// The transport of an upstream, or of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Stdio,
    Http,
    HttpSse,
}

impl Transport {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Http => "HTTP",
            Self::HttpSse => "HTTP+SSE",
        }
    }
}

/// A feature that a package does not have.
#[derive(Debug)]
pub(super) struct Lack {
    /// Names of functions of the client scripts.
    drivers: &'static [&'static str],
    versions: &'static [Version],
    pub(super) reason: &'static str,
}

/// A package on one side of the gateway.
#[derive(Debug)]
pub(super) struct Peer {
    /// Short name in the tables.
    pub(super) code: &'static str,
    /// Name and version, as in the lock files.
    pub(super) name: &'static str,
    pub(super) host: Host,
    /// Script in `conformance/interop`, or program.
    pub(super) script: &'static str,
    versions: &'static [Version],
    /// The functions of its script, if it has only these.
    only: Option<&'static [&'static str]>,
    lacks: &'static [Lack],
    /// Transports by protocol version.
    transports: fn(Version) -> &'static [Transport],
}

impl Peer {
    pub(super) fn speaks(&self, version: Version) -> bool {
        self.versions.contains(&version)
    }

    pub(super) fn has(&self, driver: &str, version: Version) -> bool {
        self.only.is_none_or(|only| only.contains(&driver)) && self.lack(driver, version).is_none()
    }

    /// Returns why the package does not have a feature.
    fn lack(&self, driver: &str, version: Version) -> Option<&'static Lack> {
        self.lacks
            .iter()
            .find(|lack| lack.drivers.contains(&driver) && lack.versions.contains(&version))
    }

    pub(super) fn transports(&self, version: Version) -> &'static [Transport] {
        (self.transports)(version)
    }

    /// Whether the package needs no Python, so that a short run has it.
    pub(super) fn is_short(&self) -> bool {
        !matches!(self.host, Host::Python(_))
    }

    pub(super) fn is_outlive(&self) -> bool {
        self.host == Host::Outlive
    }

    pub(super) fn features_without(&self) -> &'static [Lack] {
        self.lacks
    }
}

const ALL: &[Version] = &[V24, V503, V506, V511, V26];
const LEGACY: &[Version] = &[V24, V503, V506, V511];
const NEWEST: &[Version] = &[V511, V26];

const PYTHON_1: Host = Host::Python("hosts/requirements-mcp-1.txt");
const PYTHON_2: Host = Host::Python("interop/requirements-mcp.txt");
const FASTMCP: Host = Host::Python("interop/requirements-fastmcp.txt");

/// Features that only Outlive has, on both sides.
const OURS: Lack = Lack {
    drivers: &["partials"],
    versions: ALL,
    reason: "Partial results are a feature of Outlive.",
};

fn over_http(_: Version) -> &'static [Transport] {
    &[Transport::Http]
}

/// HTTP+SSE is the HTTP transport of 2024-11-05.
fn over_http_or_sse(version: Version) -> &'static [Transport] {
    match version {
        V24 => &[Transport::HttpSse],
        _ => &[Transport::Http],
    }
}

fn over_stdio_or_http(version: Version) -> &'static [Transport] {
    match version {
        V24 => &[Transport::Stdio],
        _ => &[Transport::Http, Transport::Stdio],
    }
}

fn over_stdio_http_or_sse(version: Version) -> &'static [Transport] {
    match version {
        V24 => &[Transport::HttpSse, Transport::Stdio],
        _ => &[Transport::Stdio, Transport::Http],
    }
}

/// The clients. Outlive is the last one, and plays what no other package can.
pub(super) const CLIENTS: &[Peer] = &[
    Peer {
        code: "T2",
        name: "@modelcontextprotocol/client 2.4.0",
        host: Host::Node,
        script: "client.mjs",
        versions: ALL,
        only: None,
        lacks: &[
            OURS,
            Lack {
                drivers: &["task", "task_input", "hosted"],
                versions: ALL,
                reason: "The SDK has tasks only through `@modelcontextprotocol/ext-tasks`.",
            },
        ],
        transports: over_http,
    },
    Peer {
        code: "T1",
        name: "@modelcontextprotocol/sdk 1.32.2",
        host: Host::Node,
        script: "client1.mjs",
        versions: LEGACY,
        only: None,
        lacks: &[OURS],
        transports: over_http_or_sse,
    },
    Peer {
        code: "P1",
        name: "Python `mcp` 1.30.0",
        host: PYTHON_1,
        script: "client1.py",
        versions: LEGACY,
        only: None,
        lacks: &[
            OURS,
            Lack {
                drivers: &["hosted"],
                versions: ALL,
                reason: "Its handlers of task-augmented requests are only callbacks: the store of such tasks is left to the host (`mcp/client/experimental/task_handlers.py`).",
            },
        ],
        transports: over_http_or_sse,
    },
    Peer {
        code: "P2",
        name: "Python `mcp` 2.3.0",
        host: PYTHON_2,
        script: "client.py",
        versions: NEWEST,
        only: None,
        lacks: &[
            OURS,
            Lack {
                drivers: &["task", "task_input", "hosted"],
                versions: ALL,
                reason: "The SDK does not support tasks: its `Client` has no method for them (`mcp/client/client.py`).",
            },
        ],
        transports: over_http,
    },
    Peer {
        code: "F4",
        name: "FastMCP 4.1.4 with `fastmcp-tasks` 4.1.4",
        host: FASTMCP,
        script: "fastmcp_client.py",
        versions: NEWEST,
        only: None,
        lacks: &[
            OURS,
            Lack {
                drivers: &["task", "task_input", "hosted"],
                versions: &[V511],
                reason: "It supports only tasks of 2026-07-28: “on a legacy connection the SDK strips the capability ad” (`fastmcp_tasks/client.py`).",
            },
            Lack {
                drivers: &["sampling", "roots", "gateway_state", "task_input"],
                versions: &[V26],
                reason: "It always declares tasks, and responds only to elicitation in them: “only elicitation is supported on the modern protocol” (`fastmcp_tasks/client.py`).",
            },
            Lack {
                drivers: &["listen", "subscribe"],
                versions: &[V26],
                reason: "It has no method for `subscriptions/listen` (`fastmcp/client/client.py`).",
            },
            Lack {
                drivers: &["logging"],
                versions: &[V26],
                reason: "It cannot set the log level of a request, which replaces `logging/setLevel` in 2026-07-28 (`fastmcp/client/client.py`).",
            },
        ],
        transports: over_http,
    },
    Peer {
        code: "R3",
        name: "rmcp 3.8.0",
        host: Host::Rmcp,
        script: "rmcp-client",
        versions: ALL,
        only: None,
        lacks: &[
            OURS,
            Lack {
                drivers: &["task", "task_input", "hosted"],
                versions: LEGACY,
                reason: "Its `Peer` has only the methods of 2026-07-28: `get_task`, `update_task`, `cancel_task` (`src/service/client.rs`).",
            },
            Lack {
                drivers: &["task_input"],
                versions: &[V26],
                reason: "It reads a response to `tasks/update` that has `_meta` as the result of a call: “expected at least one known CallToolResult field (content, structuredContent, isError, or _meta)” (`src/model.rs`).",
            },
        ],
        transports: over_http,
    },
    Peer {
        code: "TX",
        name: "@modelcontextprotocol/ext-tasks 0.2.2",
        host: Host::Node,
        script: "tasks.mjs",
        versions: NEWEST,
        only: Some(&["task", "task_input", "hosted"]),
        lacks: &[
            Lack {
                drivers: &["task_input"],
                versions: &[V511],
                reason: "Before 2026-07-28, it sends `tasks/result` only after the end of a task, and input requests arrive while it waits (`dist/client/task-protocol-v1.js`).",
            },
            Lack {
                drivers: &["hosted"],
                versions: &[V26],
                reason: "2026-07-28 has no tasks that a client hosts.",
            },
        ],
        transports: over_http,
    },
    Peer {
        code: "O",
        name: "Outlive",
        host: Host::Outlive,
        script: "interop-client",
        versions: ALL,
        only: None,
        lacks: &[],
        transports: over_http_or_sse,
    },
];

/// No server of these packages sends the error, which 2026-07-28 does not have.
const NO_URL_ERROR: Lack = Lack {
    drivers: &["url_required"],
    versions: ALL,
    reason: "It has no error for required URLs.",
};

/// The upstreams. Outlive is the last one, and plays what no other package can.
pub(super) const UPSTREAMS: &[Peer] = &[
    Peer {
        code: "T1",
        name: "@modelcontextprotocol/sdk 1.32.2",
        host: Host::Node,
        script: "server1.mjs",
        versions: LEGACY,
        only: None,
        lacks: &[OURS],
        transports: over_stdio_http_or_sse,
    },
    Peer {
        code: "T2",
        name: "@modelcontextprotocol/server 2.4.0",
        host: Host::Node,
        script: "server.mjs",
        versions: ALL,
        only: None,
        lacks: &[OURS],
        transports: over_stdio_or_http,
    },
    Peer {
        code: "R3",
        name: "rmcp 3.8.0",
        host: Host::Rmcp,
        script: "rmcp-server",
        versions: ALL,
        only: None,
        lacks: &[OURS, NO_URL_ERROR],
        transports: over_stdio_or_http,
    },
    Peer {
        code: "P1",
        name: "Python `mcp` 1.30.0",
        host: PYTHON_1,
        script: "server1.py",
        versions: LEGACY,
        only: None,
        lacks: &[
            OURS,
            Lack {
                drivers: &["subscribe"],
                versions: ALL,
                reason: "Its server always declares `subscribe: false` (`mcp/server/lowlevel/server.py`).",
            },
        ],
        transports: over_stdio_http_or_sse,
    },
    Peer {
        code: "P2",
        name: "Python `mcp` 2.3.0",
        host: PYTHON_2,
        script: "server.py",
        versions: NEWEST,
        only: None,
        lacks: &[
            OURS,
            Lack {
                drivers: &["subscribe"],
                versions: LEGACY,
                reason: "Its `MCPServer` has no handler for `resources/subscribe` (`mcp/server/mcpserver/server.py`).",
            },
        ],
        transports: over_stdio_or_http,
    },
    Peer {
        code: "F4",
        name: "FastMCP 4.1.4 with `fastmcp-tasks` 4.1.4",
        host: FASTMCP,
        script: "fastmcp_server.py",
        versions: NEWEST,
        only: None,
        lacks: &[
            OURS,
            Lack {
                drivers: &["listen", "subscribe"],
                versions: &[V26],
                reason: "It does not serve `subscriptions/listen`: `fastmcp/server` does not set `on_subscriptions_listen` of the SDK's server.",
            },
            Lack {
                drivers: &["subscribe"],
                versions: LEGACY,
                reason: "It has no handler for `resources/subscribe` (`fastmcp/server`).",
            },
        ],
        transports: over_stdio_or_http,
    },
    Peer {
        code: "O",
        name: "Outlive",
        host: Host::Outlive,
        script: "everything-server",
        versions: ALL,
        only: None,
        lacks: &[NO_URL_ERROR],
        transports: over_stdio_http_or_sse,
    },
];

#[cfg(test)]
mod tests {
    use super::{CLIENTS, UPSTREAMS, Version};

    #[test]
    fn outlive_is_the_last_peer_and_speaks_every_version() {
        for peers in [CLIENTS, UPSTREAMS] {
            let last = peers.last().unwrap();
            assert!(last.is_outlive() && Version::ALL.iter().all(|it| last.speaks(*it)));
            assert!(peers.iter().filter(|peer| peer.is_outlive()).count() == 1);
        }
    }
}
