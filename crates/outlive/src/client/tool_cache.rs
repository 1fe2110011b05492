//! The tools that a server has listed, for what calls need to know of them: which arguments headers
//! repeat, whether there may be a task, what a result looks like.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use outlive_wire::{TaskSupport, Tool};
use serde_json::Value;

use super::notice::ServerNotification;
use outlive_schema::{HeaderKind, HeaderParam, header_params};

/// Integers beyond this are not the same to all readers of JSON.
const SAFE_INTEGER: i64 = 9_007_199_254_740_991;

#[derive(Debug, Default)]
pub(crate) struct ToolBook {
    tools: RwLock<Tools>,
}

#[derive(Debug, Default)]
struct Tools {
    by_name: HashMap<String, Arc<KnownTool>>,
    /// The whole list was read, and has not changed since.
    is_whole: bool,
}

/// A tool, and what its schema says about headers.
#[derive(Debug)]
pub(crate) struct KnownTool {
    pub(crate) tool: Tool,
    headers: Vec<HeaderParam>,
}

impl ToolBook {
    /// Takes a tool from a list; why it cannot be used over HTTP, if it cannot.
    pub(crate) fn learn(&self, tool: &Tool) -> Result<(), String> {
        let headers = header_params_of(tool)?;
        let known = Arc::new(KnownTool { tool: tool.clone(), headers });
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        tools.by_name.insert(tool.name.clone(), known);
        Ok(())
    }

    /// All of the list has been read.
    pub(crate) fn is_whole_now(&self) {
        self.tools.write().unwrap_or_else(PoisonError::into_inner).is_whole = true;
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).by_name.get(name).cloned()
    }

    /// Whether a tool that is not here is not in the list either.
    pub(crate) fn is_whole(&self) -> bool {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).is_whole
    }

    pub(crate) fn forget(&self) {
        *self.tools.write().unwrap_or_else(PoisonError::into_inner) = Tools::default();
    }

    pub(crate) fn heard(&self, notice: &ServerNotification) {
        if matches!(notice, ServerNotification::ToolsChanged | ServerNotification::Reconnected) {
            self.forget();
        }
    }
}

fn header_params_of(tool: &Tool) -> Result<Vec<HeaderParam>, String> {
    let text = tool.input_schema.get();
    // Nearly no schema has one, and those that do not are not parsed.
    if !text.contains("x-mcp-header") {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    header_params(&schema).map_err(|error| error.to_string())
}

impl KnownTool {
    /// Whether it may become a task, where a client has to ask for one.
    pub(crate) fn task_support(&self) -> TaskSupport {
        let execution = self.tool.execution.as_ref();
        execution.and_then(|it| it.task_support).unwrap_or(TaskSupport::Forbidden)
    }

    /// The arguments that headers repeat, with their values.
    pub(crate) fn repeated(&self, arguments: &str) -> Vec<(String, String)> {
        if self.headers.is_empty() {
            return Vec::new();
        }
        let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return Vec::new() };
        let found = self.headers.iter().filter_map(|param| {
            let value = param.path.iter().try_fold(&arguments, |at, name| at.get(name))?;
            let text = match (param.kind, value) {
                (HeaderKind::String, Value::String(text)) => text.clone(),
                (HeaderKind::Boolean, Value::Bool(yes)) => yes.to_string(),
                (HeaderKind::Integer, Value::Number(number)) => {
                    let number = number.as_i64().filter(|it| it.abs() <= SAFE_INTEGER)?;
                    number.to_string()
                }
                _ => return None,
            };
            Some((param.header.clone(), text))
        });
        found.collect()
    }
}
