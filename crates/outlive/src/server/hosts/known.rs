//! The table of known hosts. Data only.
//!
//! A row states what was read in a host's source or issue, where, and when. The first row that
//! matches a client applies. `docs/hosts.md` shows the table; a test compares the two.

use std::time::Duration;

use crate::server::hosts::{
    client::{Client, Transport},
    host::Host,
    limits::HostLimits,
};

/// A row of the table.
#[derive(Debug)]
pub(crate) struct KnownHost {
    /// Name of the application or library, for people.
    #[cfg_attr(not(test), expect(dead_code, reason = "`docs/hosts.md` has it"))]
    pub(crate) product: &'static str,
    /// `clientInfo.name` of its client; a `*` may end it.
    pub(crate) name: &'static str,
    /// Transport that the row applies to; `None` for all.
    pub(crate) transport: Option<Transport>,
    /// First version of the client that the row applies to; `None` for all.
    pub(crate) since: Option<&'static str>,
    /// Limits that were found. The others have their defaults.
    pub(crate) limits: Host,
    /// Where the limits were read.
    #[cfg_attr(not(test), expect(dead_code, reason = "`docs/hosts.md` has it"))]
    pub(crate) source: &'static str,
    /// Day on which the source was read.
    #[cfg_attr(not(test), expect(dead_code, reason = "`docs/hosts.md` has it"))]
    pub(crate) read_on: &'static str,
}

impl KnownHost {
    /// Returns the row of a client.
    pub(crate) fn find(client: &Client) -> Option<&'static Self> {
        KNOWN_HOSTS.iter().find(|row| row.matches(client))
    }

    /// Returns `defaults`, replaced by the limits that this row sets.
    pub(crate) fn apply(&self, defaults: HostLimits) -> HostLimits {
        self.limits.apply(defaults)
    }

    fn matches(&self, client: &Client) -> bool {
        client.is_named(self.name)
            && self.transport.is_none_or(|transport| transport == client.transport)
            && self.since.is_none_or(|since| client.is_since(since))
    }
}

/// The client waits without a limit.
const NO_TIMEOUT: Host = Host { call_timeout: Some(None), ..Host::new() };

/// The application that uses the client sets the call timeout, so the default applies.
const SET_BY_APPLICATION: Host = Host::new();

/// Returns the limits of a client with a call timeout of this number of seconds.
const fn seconds(seconds: u64) -> Host {
    Host { call_timeout: Some(Some(Duration::from_secs(seconds))), ..Host::new() }
}

const ANY: KnownHost = KnownHost {
    product: "",
    name: "",
    transport: None,
    since: None,
    limits: Host::new(),
    source: "",
    read_on: "2026-11-18", // tidy: version is a value here
};

/// The known hosts.
pub(crate) const KNOWN_HOSTS: &[KnownHost] = &[
    KnownHost {
        product: "Claude Code",
        name: "claude-code",
        transport: Some(Transport::Http),
        limits: Host {
            progress_extends: Some(true),
            result_tokens: Some(Some(25_000)),
            ..seconds(300)
        },
        source: "anthropics/claude-code, CHANGELOG 2.1.187; vfarcic/dot-ai, pull request 708",
        ..ANY
    },
    KnownHost {
        product: "Claude Code",
        name: "claude-code",
        limits: Host {
            progress_extends: Some(true),
            result_tokens: Some(Some(25_000)),
            ..seconds(1_800)
        },
        source: "laurigates/claude-plugins, pull request 2059; vfarcic/dot-ai, pull request 708",
        ..ANY
    },
    KnownHost {
        product: "Claude Desktop, claude.ai",
        name: "claude-ai",
        transport: Some(Transport::Http),
        limits: seconds(240),
        source: "anthropics/claude-code, issue 64614",
        ..ANY
    },
    KnownHost {
        product: "Claude Desktop, claude.ai",
        name: "claude-ai",
        limits: seconds(60),
        source: "anthropics/claude-code, issues 22542 and 63379",
        ..ANY
    },
    KnownHost {
        product: "ChatGPT",
        name: "openai-mcp*",
        limits: seconds(60),
        source: "community.openai.com 1369488; basicmachines-co/basic-memory, pull request 1035",
        ..ANY
    },
    KnownHost {
        product: "Codex",
        name: "codex-mcp-client",
        since: Some("0.141"),
        limits: Host { input_stops_clock: Some(true), ..seconds(300) },
        source: "openai/codex, pull request 28234",
        ..ANY
    },
    KnownHost {
        product: "Codex",
        name: "codex-mcp-client",
        limits: Host { input_stops_clock: Some(true), ..seconds(60) },
        source: "openai/codex, pull request 28234",
        ..ANY
    },
    KnownHost {
        product: "VS Code",
        name: "Visual Studio Code*",
        limits: seconds(300),
        source: "microsoft/vscode, issues 261734 and 274094, pull request 277888",
        ..ANY
    },
    KnownHost {
        product: "Gemini CLI",
        name: "gemini-cli-mcp-client*",
        limits: seconds(600),
        source: "google-gemini/gemini-cli, MCP_DEFAULT_TIMEOUT_MSEC",
        ..ANY
    },
    KnownHost {
        product: "opencode",
        name: "opencode",
        limits: Host { progress_extends: Some(true), ..seconds(60) },
        source: "anomalyco/opencode, mcp/catalog.ts",
        ..ANY
    },
    KnownHost {
        product: "LibreChat",
        name: "@librechat/api-client",
        limits: seconds(60),
        source: "danny-avila/LibreChat, MCPManager.ts",
        ..ANY
    },
    KnownHost {
        product: "n8n",
        name: "@n8n/n8n-nodes-langchain*",
        limits: seconds(60),
        source: "n8n-io/n8n, issue 15173 and pull request 15886",
        ..ANY
    },
    KnownHost {
        product: "Spring AI",
        name: "spring-ai-mcp-client*",
        limits: seconds(20),
        source: "Spring AI 1.1, spring.ai.mcp.client.request-timeout",
        ..ANY
    },
    KnownHost {
        product: "AI SDK",
        name: "ai-sdk-mcp-client",
        limits: SET_BY_APPLICATION,
        source: "vercel/ai, packages/mcp",
        ..ANY
    },
    KnownHost {
        product: "Python SDK",
        name: "mcp",
        limits: SET_BY_APPLICATION,
        source: "modelcontextprotocol/python-sdk, DEFAULT_CLIENT_INFO",
        ..ANY
    },
    KnownHost {
        product: "Outlive",
        name: "outlive",
        limits: Host { progress_extends: Some(true), result_tokens: Some(None), ..NO_TIMEOUT },
        source: "this project",
        ..ANY
    },
];

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{KNOWN_HOSTS, KnownHost};
    use crate::server::hosts::{
        Hosts,
        client::{Client, Transport},
    };

    /// Formats a row as `docs/hosts.md` has it.
    fn row(host: &KnownHost) -> String {
        let transport = match host.transport {
            Some(Transport::Http) => ", HTTP",
            Some(Transport::Stdio) => ", stdio",
            None => "",
        };
        let since = host.since.map(|since| format!(" from {since} on")).unwrap_or_default();
        let timeout = match host.limits.call_timeout {
            None => "set by the application".to_owned(),
            Some(None) => "none".to_owned(),
            Some(Some(timeout)) => format!("{} s", timeout.as_secs()),
        };
        let unknown = Client::new("another client", "", Transport::Http);
        let limits = host.apply(Hosts::known().limits(&unknown));
        let waits = match limits.slice() {
            Some(slice) if !limits.progress_extends => format!("{} s", slice.as_secs()),
            Some(_) => "up to 30 min, with progress".to_owned(),
            None => "up to 30 min".to_owned(),
        };
        let tokens = match host.limits.result_tokens {
            None => String::new(),
            Some(None) => "all".to_owned(),
            Some(Some(tokens)) => format!("{tokens} tokens"),
        };
        let KnownHost { product, name, source, read_on, .. } = host;
        let client = format!("{product}{since}{transport}");
        format!("| {client} | `{name}` | {timeout} | {waits} | {tokens} | {source}; {read_on} |")
    }

    #[test]
    fn page_of_hosts_has_every_row() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hosts.md");
        let page = fs::read_to_string(page).unwrap();
        let (_, table) = page.split_once("\n## The known hosts\n").unwrap();
        let table = table.split("\n## ").next().unwrap();
        let said: Vec<&str> = table.lines().filter(|line| line.starts_with('|')).skip(2).collect();
        let rows: Vec<String> = KNOWN_HOSTS.iter().map(row).collect();
        assert_eq!(said, rows, "the table must be:\n{}", rows.join("\n"));
    }

    #[test]
    fn every_row_is_found_by_a_client_that_it_describes() {
        for row in KNOWN_HOSTS {
            let name = row.name.trim_end_matches('*');
            let transport = row.transport.unwrap_or(Transport::Stdio);
            let client = Client::new(name, row.since.unwrap_or("0"), transport);
            let found = KnownHost::find(&client).map(|found| found.limits.clone());
            assert_eq!(found.as_ref(), Some(&row.limits), "{}", row.name);
            assert!(!row.source.is_empty(), "{}", row.name);
        }
    }

    #[test]
    fn newer_version_has_its_own_row() {
        let timeout = |version| {
            let client = Client::new("codex-mcp-client", version, Transport::Stdio);
            KnownHost::find(&client).and_then(|row| row.limits.call_timeout.flatten())
        };
        assert_eq!(timeout("0.140.9").map(|timeout| timeout.as_secs()), Some(60));
        assert_eq!(timeout("0.141.0").map(|timeout| timeout.as_secs()), Some(300));
    }
}
