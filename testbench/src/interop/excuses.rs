//! Features that do not work, with a reference to the reason in the peer.

use super::legs::{LEGACY, Leg, MODERN, Peer, Transport};

/// A reason, and the error that must occur for it to apply.
pub(super) struct Excuse {
    peer: Peer,
    transport: Option<Transport>,
    era: Option<&'static str>,
    features: &'static [&'static str],
    /// A part of the observed error; empty if the feature cannot be tested.
    pub(super) says: &'static str,
    pub(super) because: &'static str,
}

pub(super) fn of(leg: &Leg, feature: &str) -> Option<&'static Excuse> {
    EXCUSES.iter().find(|it| {
        it.peer == leg.peer
            && it.features.contains(&feature)
            && it.transport.is_none_or(|transport| transport == leg.transport)
            && it.era.is_none_or(|era| era == leg.era)
    })
}

const EXCUSES: &[Excuse] = &[
    Excuse {
        peer: Peer::TsServer,
        transport: None,
        era: None,
        features: &["tasks"],
        says: "",
        because: "Its `McpServer` does not support tasks: it has only types of the `tasks/…` methods (`dist/mcp-*.mjs` names none), and `@modelcontextprotocol/ext-tasks` has no server part (`exports` of its `package.json`).",
    },
    Excuse {
        peer: Peer::TsClient,
        transport: None,
        era: None,
        features: &["tasks"],
        says: "",
        because: "The SDK supports tasks only through `@modelcontextprotocol/ext-tasks`, which has a separate row.",
    },
    Excuse {
        peer: Peer::EverythingServer,
        transport: None,
        era: None,
        features: &["cancel"],
        says: "",
        because: "Its tools ignore the `signal` of a request (`dist/tools/*.js`), so a cancelled call behaves like any other.",
    },
    Excuse {
        peer: Peer::EverythingServer,
        transport: Some(Transport::Http),
        era: None,
        features: &["resumption"],
        says: "",
        because: "It stores events, but no tool closes its stream (`dist/transports/streamableHttp.js`).",
    },
    Excuse {
        peer: Peer::PythonClient,
        transport: None,
        era: None,
        features: &["tasks"],
        says: "",
        because: "The SDK does not support tasks: its `Client` has no method for them (`mcp/client/client.py`).",
    },
    Excuse {
        peer: Peer::FastMcpClient,
        transport: None,
        era: Some(LEGACY),
        features: &["tasks"],
        says: "runs only as a task",
        because: "It supports only tasks of 2026-07-28: “on a legacy connection the SDK strips the capability ad” (`fastmcp_tasks/client.py`).",
    },
    Excuse {
        peer: Peer::FastMcpClient,
        transport: None,
        era: Some(MODERN),
        features: &["logging"],
        says: "logging/setLevel is not available",
        because: "It cannot set the log level of a request, which replaces `logging/setLevel` in 2026-07-28 (`fastmcp/client/client.py`).",
    },
    Excuse {
        peer: Peer::FastMcpClient,
        transport: None,
        era: Some(MODERN),
        features: &["listen"],
        says: "no change was heard of",
        because: "It has no method for `subscriptions/listen` (`fastmcp/client/client.py`).",
    },
    Excuse {
        peer: Peer::Inspector,
        transport: None,
        era: None,
        features: &[
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
        ],
        says: "",
        because: "Not tested: the command line runs one method per process, does not respond to input requests and keeps no connection (`--cli --help`).",
    },
    Excuse {
        peer: Peer::PythonServer,
        transport: None,
        era: None,
        features: &["tasks"],
        says: "it was answered without a task",
        because: "The SDK does not support tasks: its `MCPServer` cannot create one (`mcp/server/mcpserver/server.py`).",
    },
    Excuse {
        peer: Peer::RmcpServer,
        transport: None,
        era: Some(LEGACY),
        features: &["tasks"],
        says: "it was answered without a task",
        because: "It supports only tasks of 2026-07-28: `CallToolRequestParams` has no `task` (`src/model.rs`), and `tasks/result` is missing (`src/model/task.rs`).",
    },
    Excuse {
        peer: Peer::RmcpClient,
        transport: None,
        era: Some(LEGACY),
        features: &["tasks"],
        says: "",
        because: "Its `Peer` has only the methods of 2026-07-28: `get_task`, `update_task`, `cancel_task` (`src/service/client.rs`); a call cannot request a task of 2025-11-25.",
    },
    Excuse {
        peer: Peer::FastMcpServer,
        transport: None,
        era: Some(LEGACY),
        features: &["tasks"],
        says: "it was answered without a task",
        because: "It supports only tasks of 2026-07-28 (`_TASK_METHOD_VERSIONS` in `fastmcp_tasks/extension.py`).",
    },
    Excuse {
        peer: Peer::FastMcpServer,
        transport: None,
        era: Some(MODERN),
        features: &["listen"],
        says: "Method not found",
        because: "It does not serve `subscriptions/listen`: `fastmcp/server` does not set `on_subscriptions_listen` of the SDK's server (`mcp/server/subscriptions.py`).",
    },
];
