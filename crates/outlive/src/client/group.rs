//! The tools of several servers under one interface, each server with its own prefix.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::{PoisonError, RwLock},
};

use outlive_wire::Tool;
use serde::Serialize;

use super::{
    core::Client,
    error::{Error, Result},
    request_builder::RequestBuilder,
    tools::ToolCall,
};

/// Separator between prefix and tool name. Single underscores occur in names.
const BETWEEN: &str = "__";

/// Longest tool name that all models accept.
const LONGEST: usize = 64;

/// Clients of several servers whose tools share one namespace.
///
/// ```no_run
/// use outlive::client::{Client, group::ClientGroup};
///
/// # async fn run() -> outlive::client::Result<()> {
/// let group = ClientGroup::new()
///     .with("files", Client::connect("http://127.0.0.1:8001/mcp").await?)
///     .with("mail", Client::connect("http://127.0.0.1:8002/mcp").await?);
/// let all = group.list_tools().await;
/// let result = group.call_tool("files__search", serde_json::json!({"text": "cat"}))?.await?;
/// # let _ = (all, result);
/// # Ok(())
/// # }
/// ```
#[derive(Default)]
pub struct ClientGroup {
    members: BTreeMap<String, Client>,
    /// Prefix and tool for each name of the last listing.
    names: RwLock<HashMap<String, (String, String)>>,
}

/// Tools of all servers of a group.
#[derive(Debug)]
#[non_exhaustive]
pub struct GroupTools {
    /// Tools, with their names in the group.
    pub tools: Vec<Tool>,
    /// Prefixes of the servers whose tools could not be listed, with the error.
    pub missing: Vec<(String, Error)>,
}

impl fmt::Debug for ClientGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.members.keys()).finish()
    }
}

impl ClientGroup {
    /// Creates a group without servers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server under a prefix, and replaces an earlier server with that prefix. The prefix is
    /// the program's choice, because a server's own name is not trustworthy.
    #[must_use]
    pub fn with(mut self, prefix: impl Into<String>, client: Client) -> Self {
        self.members.insert(prefix.into(), client);
        self
    }

    /// Returns the client of a server by its prefix.
    pub fn client(&self, prefix: &str) -> Option<&Client> {
        self.members.get(prefix)
    }

    /// Lists the tools of all servers as `prefix__tool`. A name that is too long or not unique is
    /// shortened and numbered. Names are stable between listings while the tools do not change.
    pub async fn list_tools(&self) -> GroupTools {
        let mut listed = GroupTools { tools: Vec::new(), missing: Vec::new() };
        let mut names = HashMap::new();
        for (prefix, client) in &self.members {
            let tools = match client.list_tools().collect().await {
                Ok(tools) => tools,
                Err(error) => {
                    listed.missing.push((prefix.clone(), error));
                    continue;
                }
            };
            for mut tool in tools {
                let name = free_name(prefix, &tool.name, &names);
                names.insert(name.clone(), (prefix.clone(), tool.name));
                tool.name = name;
                listed.tools.push(tool);
            }
        }
        *self.names.write().unwrap_or_else(PoisonError::into_inner) = names;
        listed
    }

    /// Calls a tool by its name in the group.
    ///
    /// # Errors
    ///
    /// If no server of the group has the tool.
    pub fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<RequestBuilder<ToolCall>> {
        let (prefix, tool) = self.resolve(name)?;
        let client = self
            .members
            .get(&prefix)
            .ok_or_else(|| Error::not_offered(format!("the group has no server `{prefix}`")))?;
        Ok(client.call_tool(tool, arguments))
    }

    fn resolve(&self, name: &str) -> Result<(String, String)> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return Ok(known.clone());
        }
        // Before the first listing, the name is split at the prefix.
        let split = self.members.keys().filter_map(|prefix| {
            let tool = name.strip_prefix(prefix.as_str())?.strip_prefix(BETWEEN)?;
            Some((prefix.clone(), tool.to_owned()))
        });
        split.max_by_key(|(prefix, _)| prefix.len()).ok_or_else(|| {
            Error::not_offered(format!(
                "no server of the group has the tool `{name}`; call `list_tools` first"
            ))
        })
    }
}

fn free_name(prefix: &str, tool: &str, taken: &HashMap<String, (String, String)>) -> String {
    let whole = format!("{prefix}{BETWEEN}{tool}");
    if whole.len() <= LONGEST && !taken.contains_key(&whole) {
        return whole;
    }
    let mut number = 2_u32;
    loop {
        let tail = format!("_{number}");
        let room = LONGEST - tail.len();
        let cut = (0..=room.min(whole.len())).rev().find(|at| whole.is_char_boundary(*at));
        let name = format!("{}{tail}", &whole[..cut.unwrap_or(0)]);
        if !taken.contains_key(&name) {
            return name;
        }
        number += 1;
    }
}
