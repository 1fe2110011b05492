//! Finds the servers in a host's file, whatever host it belongs to.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};

use super::json_with_comments::plain_json;
use crate::error::{CliError, Result};

/// Members with servers by name: of Claude, Cursor, Windsurf and Gemini CLI, of VS Code (its own
/// file, and its settings), of Zed, and of Codex.
const MEMBERS: &[&[&str]] =
    &[&["mcpServers"], &["servers"], &["mcp", "servers"], &["context_servers"], &["mcp_servers"]];

/// Servers of a file.
#[derive(Debug, Default)]
pub(super) struct HostFile {
    pub(super) servers: Vec<(String, Map<String, Value>)>,
    /// Projects of Claude Code with servers that are not imported here.
    pub(super) other_projects: Vec<String>,
    /// Folder of the project that the file belongs to.
    pub(super) project: PathBuf,
}

impl HostFile {
    /// Reads a file. `here` is the current folder: Claude Code has servers for each project.
    pub(super) fn read(path: &Path, here: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|error| {
            CliError::usage(format_args!("cannot read {}: {error}", path.display()))
                .remedy("name the file in which your host has its MCP servers, such as ~/.claude.json or .cursor/mcp.json")
        })?;
        let value = parse(path, &text)?;
        let project = project_of(path);
        let mut file = Self { project, ..Self::default() };
        for members in MEMBERS {
            let table = members.iter().try_fold(&value, |value, member| value.get(member));
            file.add(table);
        }
        file.add_projects(value.get("projects"), here);
        if file.servers.is_empty() && file.other_projects.is_empty() {
            let what = format!("{} has no MCP servers", path.display());
            let remedy = "name a file with `mcpServers`, `servers` (VS Code), `context_servers` (Zed) or [mcp_servers] (Codex)";
            return Err(CliError::usage(what).remedy(remedy));
        }
        Ok(file)
    }

    /// Adds the servers of a table. The first one of a name wins.
    fn add(&mut self, table: Option<&Value>) {
        for (name, server) in table.and_then(Value::as_object).into_iter().flatten() {
            let known = self.servers.iter().any(|(known, _)| known == name);
            if let (false, Value::Object(server)) = (known, server) {
                self.servers.push((name.clone(), server.clone()));
            }
        }
    }

    /// Adds the servers of the project in the current folder.
    fn add_projects(&mut self, projects: Option<&Value>, here: &Path) {
        for (folder, project) in projects.and_then(Value::as_object).into_iter().flatten() {
            let servers = project.get("mcpServers");
            let is_empty = servers.and_then(Value::as_object).is_none_or(Map::is_empty);
            if here.starts_with(folder) {
                self.add(servers);
            } else if !is_empty {
                self.other_projects.push(folder.clone());
            }
        }
    }
}

fn parse(path: &Path, text: &str) -> Result<Value> {
    let failed = |error: &dyn std::fmt::Display| {
        CliError::usage(format_args!("cannot read {}: {error}", path.display()))
            .remedy("correct the file; comments and trailing commas are allowed")
    };
    if path.extension().is_some_and(|extension| extension == "toml") {
        return toml::from_str(text).map_err(|error| failed(&error));
    }
    serde_json::from_str(&plain_json(text)).map_err(|error| failed(&error))
}

/// Returns the folder of the project: that of the file, or the one above a folder such as `.vscode`.
fn project_of(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("/"));
    let is_hidden = folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let project = if is_hidden { folder.parent().unwrap_or(folder) } else { folder };
    project.to_owned()
}
