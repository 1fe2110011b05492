//! What does not work, and where the peer itself says why.

use super::legs::{LEGACY, Leg, MODERN, Peer, Transport};

/// A reason, with what must have been seen for it to count.
pub(super) struct Excuse {
    peer: Peer,
    transport: Option<Transport>,
    era: Option<&'static str>,
    features: &'static [&'static str],
    /// A part of what was seen; empty where the feature cannot even be tried.
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
        because: "Its `McpServer` cannot make tasks: of the `tasks/…` methods only types are left (`dist/mcp-*.mjs` names none), and `@modelcontextprotocol/ext-tasks` has no server half (`exports` of its `package.json`).",
    },
    Excuse {
        peer: Peer::TsClient,
        transport: None,
        era: None,
        features: &["tasks"],
        says: "",
        because: "The SDK has left tasks to `@modelcontextprotocol/ext-tasks`, which has a row of its own.",
    },
    Excuse {
        peer: Peer::EverythingServer,
        transport: None,
        era: None,
        features: &["cancel"],
        says: "",
        because: "None of its tools looks at the `signal` of its request (`dist/tools/*.js`), so a cancelled call cannot be told from another.",
    },
    Excuse {
        peer: Peer::EverythingServer,
        transport: Some(Transport::Http),
        era: None,
        features: &["resumption"],
        says: "",
        because: "It keeps events, but has no tool that closes its stream (`dist/transports/streamableHttp.js`).",
    },
    Excuse {
        peer: Peer::PythonClient,
        transport: None,
        era: None,
        features: &["tasks"],
        says: "",
        because: "The SDK has no tasks: its `Client` has no method for them (`mcp/client/client.py`).",
    },
    Excuse {
        peer: Peer::FastMcpClient,
        transport: None,
        era: Some(LEGACY),
        features: &["tasks"],
        says: "runs only as a task",
        because: "Its tasks are those of 2026-07-28 only: “on a legacy connection the SDK strips the capability ad” (`fastmcp_tasks/client.py`).",
    },
    Excuse {
        peer: Peer::FastMcpClient,
        transport: None,
        era: Some(MODERN),
        features: &["logging"],
        says: "logging/setLevel is not available",
        because: "It has no way to say the level of a request, which 2026-07-28 has in place of `logging/setLevel` (`fastmcp/client/client.py`).",
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
        because: "Not tried: the command line is started for one method at a time, answers no questions and keeps no connection (`--cli --help`).",
    },
    Excuse {
        peer: Peer::PythonServer,
        transport: None,
        era: None,
        features: &["tasks"],
        says: "it was answered without a task",
        because: "The SDK has no tasks: its `MCPServer` has no way to make one (`mcp/server/mcpserver/server.py`).",
    },
    Excuse {
        peer: Peer::RmcpServer,
        transport: None,
        era: Some(LEGACY),
        features: &["tasks"],
        says: "it was answered without a task",
        because: "It has the tasks of the extension to 2026-07-28 alone: `CallToolRequestParams` has no `task` (`src/model.rs`), and there is no `tasks/result` (`src/model/task.rs`).",
    },
    Excuse {
        peer: Peer::RmcpClient,
        transport: None,
        era: Some(LEGACY),
        features: &["tasks"],
        says: "",
        because: "Its `Peer` has the methods of the extension to 2026-07-28 alone: `get_task`, `update_task`, `cancel_task` (`src/service/client.rs`); no call can ask for a task of 2025-11-25.",
    },
    Excuse {
        peer: Peer::FastMcpServer,
        transport: None,
        era: Some(LEGACY),
        features: &["tasks"],
        says: "it was answered without a task",
        because: "Its tasks are the extension to 2026-07-28 and are not offered before (`_TASK_METHOD_VERSIONS` in `fastmcp_tasks/extension.py`).",
    },
    Excuse {
        peer: Peer::FastMcpServer,
        transport: None,
        era: Some(MODERN),
        features: &["listen"],
        says: "Method not found",
        because: "It does not serve `subscriptions/listen`: nothing in `fastmcp/server` gives the SDK's server its `on_subscriptions_listen` (`mcp/server/subscriptions.py`).",
    },
];
