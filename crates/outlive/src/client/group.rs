//! Several servers in one program: their tools under one roof, each with a prefix of its own.

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

/// Between a prefix and the name of a tool. Names may have single underscores.
const BETWEEN: &str = "__";

/// How long a name of a tool may be for all models to take it.
const LONGEST: usize = 64;

/// Joins the tools of several servers.
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
    /// Which tool of whom a name stands for; as the last listing had it.
    names: RwLock<HashMap<String, (String, String)>>,
}

/// The tools of all servers of a hub.
#[derive(Debug)]
#[non_exhaustive]
pub struct GroupTools {
    /// The tools, with the names that the hub has for them.
    pub tools: Vec<Tool>,
    /// The servers whose tools could not be listed, and why. The others are there all the same.
    pub missing: Vec<(String, Error)>,
}

impl fmt::Debug for ClientGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.members.keys()).finish()
    }
}

impl ClientGroup {
    /// Without servers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server under a prefix, in place of one that had it. The prefix is this program's
    /// choice: what a server calls itself is not to be relied on.
    #[must_use]
    pub fn with(mut self, prefix: impl Into<String>, client: Client) -> Self {
        self.members.insert(prefix.into(), client);
        self
    }

    /// The client of a server, by its prefix.
    pub fn client(&self, prefix: &str) -> Option<&Client> {
        self.members.get(prefix)
    }

    /// The tools of all servers. Names are `prefix__tool`; where two would be the same, or one is too
    /// long, it gets a number. They stay the same from listing to listing for as long as the tools do.
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

    /// Calls a tool by the name that the hub has for it.
    ///
    /// # Errors
    ///
    /// When no server of the hub has it.
    pub fn call_tool(
        &self,
        name: &str,
        arguments: impl Serialize,
    ) -> Result<RequestBuilder<ToolCall>> {
        let (prefix, tool) = self.resolve(name)?;
        let client = self
            .members
            .get(&prefix)
            .ok_or_else(|| Error::not_offered(format!("no server of the hub is `{prefix}`")))?;
        Ok(client.call_tool(tool, arguments))
    }

    fn resolve(&self, name: &str) -> Result<(String, String)> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name) {
            return Ok(known.clone());
        }
        // Before the first listing a name is taken at its word.
        let split = self.members.keys().filter_map(|prefix| {
            let tool = name.strip_prefix(prefix.as_str())?.strip_prefix(BETWEEN)?;
            Some((prefix.clone(), tool.to_owned()))
        });
        split.max_by_key(|(prefix, _)| prefix.len()).ok_or_else(|| {
            Error::not_offered(format!(
                "no server of the hub has the tool `{name}`; list them first"
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
