//! A tool after validation.

use std::sync::Arc;

use outlive_schema::Schema;
use serde_json::value::RawValue;

use crate::server::{
    access::Access, exec::executable::Executable, meter::ToolMeter, register::registry::Entry,
    run::replay_policy::ReplayPolicy, throttle::Throttle,
};

/// A validated tool.
pub(crate) struct RegisteredTool {
    /// Definition of the tool in lists.
    pub(crate) info: Arc<outlive_wire::Tool>,
    /// Definition in lists for clients without tasks.
    pub(crate) bridged_info: Arc<outlive_wire::Tool>,
    pub(crate) schema: Arc<ToolSchema>,
    pub(crate) access: Access,
    pub(crate) limits: ToolLimits,
    pub(crate) exec: Arc<Executable>,
    pub(crate) meter: Arc<ToolMeter>,
    /// Words of the command that a call runs.
    pub(crate) command_words: Option<CommandWords>,
}

/// Returns the words of the command that a call with these arguments runs.
pub(crate) type CommandWords = Arc<dyn Fn(&RawValue) -> Option<Vec<String>> + Send + Sync>;

/// Schemas and replay policy of a tool.
pub(crate) struct ToolSchema {
    pub(crate) name: String,
    pub(crate) input: Schema,
    /// Whether the decoding into the handler's type checks the structure of the arguments.
    pub(crate) typed_input: bool,
    pub(crate) output: Option<Schema>,
    pub(crate) typed_output: bool,
    pub(crate) replay: ReplayPolicy,
}

/// The limits of one tool.
pub(crate) struct ToolLimits {
    /// Limits over all callers.
    pub(crate) all: Option<Arc<Throttle>>,
    pub(crate) per_caller: Option<Arc<Throttle>>,
}

impl ToolSchema {
    /// Checks the arguments. Skips the parts that decoding into the handler's type checks.
    pub(crate) fn check_input(&self, arguments: &str) -> Result<(), String> {
        let checked = match self.typed_input {
            true => self.input.check_typed(arguments),
            false => self.input.check(arguments),
        };
        checked.map_err(|violation| violation.to_string())
    }

    /// Checks a structured result, if the tool has an output schema.
    pub(crate) fn check_output(&self, structured: &str) -> Result<(), String> {
        let checked = match &self.output {
            None => Ok(()),
            Some(schema) if self.typed_output => schema.check_typed(structured),
            Some(schema) => schema.check(structured),
        };
        checked.map_err(|violation| violation.to_string())
    }
}

impl Entry for RegisteredTool {
    fn key(&self) -> &str {
        &self.info.name
    }

    fn access(&self) -> &Access {
        &self.access
    }
}
