//! Cache of listed tools. Calls need the parameters that are repeated as headers, the task support
//! and the output schema.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use outlive_wire::{TaskSupport, Tool};
use serde_json::Value;

use super::notice::ServerNotification;
use outlive_schema::{HeaderKind, HeaderParam, header_params};

/// Largest integer that all JSON parsers represent exactly.
const SAFE_INTEGER: i64 = 9_007_199_254_740_991;

#[derive(Debug, Default)]
pub(crate) struct ToolBook {
    tools: RwLock<Tools>,
}

#[derive(Debug, Default)]
struct Tools {
    by_name: HashMap<String, Arc<KnownTool>>,
    /// Whether the list was read completely and has not changed since.
    is_whole: bool,
}

/// A tool and its `x-mcp-header` parameters.
#[derive(Debug)]
pub(crate) struct KnownTool {
    pub(crate) tool: Tool,
    headers: Vec<HeaderParam>,
}

impl ToolBook {
    /// Adds a tool from a list. Returns an error if the tool cannot be called over HTTP.
    pub(crate) fn learn(&self, tool: &Tool) -> Result<(), String> {
        let headers = header_params_of(tool)?;
        let known = Arc::new(KnownTool { tool: tool.clone(), headers });
        let mut tools = self.tools.write().unwrap_or_else(PoisonError::into_inner);
        tools.by_name.insert(tool.name.clone(), known);
        Ok(())
    }

    /// Records that the list was read completely.
    pub(crate) fn is_whole_now(&self) {
        self.tools.write().unwrap_or_else(PoisonError::into_inner).is_whole = true;
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<KnownTool>> {
        self.tools.read().unwrap_or_else(PoisonError::into_inner).by_name.get(name).cloned()
    }

    /// Returns whether the cache contains the complete list.
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
    // Parses only schemas that contain the keyword, because almost none do.
    if !text.contains("x-mcp-header") {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    header_params(&schema).map_err(|error| error.to_string())
}

impl KnownTool {
    /// Returns whether the tool may run as a task, for versions in which the client requests tasks.
    pub(crate) fn task_support(&self) -> TaskSupport {
        let execution = self.tool.execution.as_ref();
        execution.and_then(|it| it.task_support).unwrap_or(TaskSupport::Forbidden)
    }

    /// Returns the header parameters and their values.
    pub(crate) fn repeated(&self, arguments: &str) -> Vec<(String, String)> {
        header_values(&self.headers, arguments)
    }
}

/// Returns the names and values of the arguments that headers repeat.
pub(crate) fn header_values(params: &[HeaderParam], arguments: &str) -> Vec<(String, String)> {
    if params.is_empty() {
        return Vec::new();
    }
    let Ok(arguments) = serde_json::from_str::<Value>(arguments) else { return Vec::new() };
    let found = params.iter().filter_map(|param| {
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
