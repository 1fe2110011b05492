//! Hosts: the location and format of their server configuration.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::{Map, Value, json};

use crate::call::server::quoted;

/// An application that uses MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Host {
    ClaudeCode,
    ClaudeDesktop,
    #[value(name = "vscode")]
    VsCode,
    Cursor,
    Codex,
    GeminiCli,
    Windsurf,
    Zed,
}

/// Connection between a host and the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// HTTP, with a token in this environment variable of the host.
    Http { url: String, token_env: Option<String> },
    /// A process that the host starts: program and arguments.
    Stdio(Vec<String>),
}

impl Host {
    /// Returns the product name.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::VsCode => "VS Code",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
        }
    }

    /// Returns whether the host supports servers over HTTP.
    pub(super) fn has_http(self) -> bool {
        self != Self::ClaudeDesktop
    }

    /// Returns the file with the host's servers: of the project in the current folder if the host
    /// supports that, else of the user.
    pub(super) fn file(self, home: &Path) -> PathBuf {
        let desktop = if cfg!(target_os = "macos") {
            "Library/Application Support/Claude"
        } else if cfg!(windows) {
            "AppData/Roaming/Claude"
        } else {
            ".config/Claude"
        };
        match self {
            Self::ClaudeCode => PathBuf::from(".mcp.json"),
            Self::ClaudeDesktop => home.join(desktop).join("claude_desktop_config.json"),
            Self::VsCode => PathBuf::from(".vscode/mcp.json"),
            Self::Cursor => PathBuf::from(".cursor/mcp.json"),
            Self::Codex => home.join(".codex/config.toml"),
            Self::GeminiCli => PathBuf::from(".gemini/settings.json"),
            Self::Windsurf => home.join(".codeium/windsurf/mcp_config.json"),
            Self::Zed => home.join(".config/zed/settings.json"),
        }
    }

    /// Returns the member of the file that contains the servers by name.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            _ => "mcpServers",
        }
    }

    /// Returns the entry of the server.
    pub(super) fn entry(self, reach: &Reach) -> Map<String, Value> {
        let entry = match reach {
            Reach::Http { url, token_env } => self.http_entry(url, token_env.as_deref()),
            Reach::Stdio(words) => {
                let (program, arguments) =
                    words.split_first().map_or(("", &[][..]), |(first, rest)| (first, rest));
                match self {
                    Self::VsCode => json!({"type": "stdio", "command": program, "args": arguments}),
                    _ => json!({"command": program, "args": arguments}),
                }
            }
        };
        match entry {
            Value::Object(entry) => entry,
            _ => Map::new(),
        }
    }

    fn http_entry(self, url: &str, token_env: Option<&str>) -> Value {
        let key = match self {
            Self::GeminiCli => "httpUrl",
            Self::Windsurf => "serverUrl",
            _ => "url",
        };
        let mut entry = Map::new();
        if matches!(self, Self::ClaudeCode | Self::VsCode) {
            entry.insert("type".to_owned(), "http".into());
        }
        entry.insert(key.to_owned(), url.into());
        let Some(variable) = token_env else { return entry.into() };
        if self == Self::Codex {
            entry.insert("bearer_token_env_var".to_owned(), variable.into());
            return entry.into();
        }
        let value = match self {
            Self::VsCode | Self::Cursor | Self::Windsurf => format!("Bearer ${{env:{variable}}}"),
            _ => format!("Bearer ${{{variable}}}"),
        };
        entry.insert("headers".to_owned(), json!({"Authorization": value}));
        entry.into()
    }

    /// Returns the host's own command that adds the server, if there is one.
    pub(super) fn command(self, name: &str, reach: &Reach) -> Option<String> {
        let name = quoted(name);
        Some(match (self, reach) {
            (Self::ClaudeCode, Reach::Http { url, token_env }) => {
                let header = token_env.as_ref().map_or_else(String::new, |variable| {
                    format!(" --header \"Authorization: Bearer ${variable}\"")
                });
                format!("claude mcp add --transport http {name} {}{header}", quoted(url))
            }
            (Self::ClaudeCode, Reach::Stdio(words)) => {
                format!("claude mcp add {name} -- {}", line(words))
            }
            (Self::Codex, Reach::Http { url, token_env }) => {
                let token = token_env.as_ref().map_or_else(String::new, |variable| {
                    format!(" --bearer-token-env-var {variable}")
                });
                format!("codex mcp add {name} --url {}{token}", quoted(url))
            }
            (Self::Codex, Reach::Stdio(words)) => {
                format!("codex mcp add {name} -- {}", line(words))
            }
            (Self::VsCode, _) => {
                let mut entry = Map::from_iter([("name".to_owned(), Value::from(name))]);
                entry.extend(self.entry(reach));
                format!("code --add-mcp {}", quoted(&Value::Object(entry).to_string()))
            }
            _ => return None,
        })
    }
}

fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;
    use serde_json::{Value, json};

    use super::{Host, Reach};

    fn http(token: Option<&str>) -> Reach {
        let token_env = token.map(str::to_owned);
        Reach::Http { url: "http://127.0.0.1:8000/mcp".to_owned(), token_env }
    }

    #[test]
    fn http_entry_has_members_of_host() {
        let url = "http://127.0.0.1:8000/mcp";
        let wanted = [
            (
                Host::ClaudeCode,
                json!({"type": "http", "url": url, "headers": {"Authorization": "Bearer ${TOKEN}"}}),
            ),
            (
                Host::VsCode,
                json!({"type": "http", "url": url, "headers": {"Authorization": "Bearer ${env:TOKEN}"}}),
            ),
            (
                Host::Cursor,
                json!({"url": url, "headers": {"Authorization": "Bearer ${env:TOKEN}"}}),
            ),
            (Host::Codex, json!({"url": url, "bearer_token_env_var": "TOKEN"})),
            (
                Host::GeminiCli,
                json!({"httpUrl": url, "headers": {"Authorization": "Bearer ${TOKEN}"}}),
            ),
            (
                Host::Windsurf,
                json!({"serverUrl": url, "headers": {"Authorization": "Bearer ${env:TOKEN}"}}),
            ),
        ];
        for (host, entry) in wanted {
            assert_eq!(Value::Object(host.entry(&http(Some("TOKEN")))), entry, "{host:?}");
        }
    }

    #[test]
    fn entry_without_token_has_no_authorization() {
        for host in Host::value_variants() {
            let entry = Value::Object(host.entry(&http(None))).to_string();
            assert!(!entry.contains("Bearer") && !entry.contains("token"), "{host:?}: {entry}");
        }
    }

    #[test]
    fn stdio_entry_has_program_and_arguments() {
        let words = ["outlive", "serve", "--stdio"].map(str::to_owned).to_vec();
        for host in Host::value_variants() {
            let entry = host.entry(&Reach::Stdio(words.clone()));
            assert_eq!(entry["command"], "outlive", "{host:?}");
            assert_eq!(entry["args"], json!(["serve", "--stdio"]), "{host:?}");
        }
    }

    #[test]
    fn host_command_quotes_words_for_shell() {
        let words = ["outlive", "serve", "/my files/outlive.toml"].map(str::to_owned).to_vec();
        let command = Host::ClaudeCode.command("my server", &Reach::Stdio(words)).unwrap();
        assert_eq!(command, "claude mcp add 'my server' -- outlive serve '/my files/outlive.toml'");
        let command = Host::Codex.command("shop", &http(Some("TOKEN"))).unwrap();
        assert_eq!(
            command,
            "codex mcp add shop --url http://127.0.0.1:8000/mcp --bearer-token-env-var TOKEN"
        );
    }
}
