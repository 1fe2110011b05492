//! A tool after all checks of its registration.

use std::sync::Arc;

use outlive_schema::Schema;

use crate::server::{
    access::Access, exec::executable::Executable, meter::ToolMeter, register::registry::Entry,
    run::replay_policy::ReplayPolicy, throttle::Throttle,
};

/// A tool that is registered.
pub(crate) struct RegisteredTool {
    /// What lists show.
    pub(crate) info: Arc<outlive_wire::Tool>,
    pub(crate) schema: Arc<ToolSchema>,
    pub(crate) access: Access,
    pub(crate) limits: ToolLimits,
    pub(crate) exec: Arc<Executable>,
    pub(crate) meter: Arc<ToolMeter>,
}

/// What the arguments and results of a tool have to be.
pub(crate) struct ToolSchema {
    pub(crate) name: String,
    pub(crate) input: Schema,
    /// Whether the handler's own type checks the structure of the arguments.
    pub(crate) typed_input: bool,
    pub(crate) output: Option<Schema>,
    pub(crate) typed_output: bool,
    pub(crate) replay: ReplayPolicy,
}

/// The limits of one tool.
pub(crate) struct ToolLimits {
    /// Of all callers together.
    pub(crate) all: Option<Arc<Throttle>>,
    pub(crate) per_caller: Option<Arc<Throttle>>,
}

impl ToolSchema {
    /// Checks arguments, as far as the handler's type does not.
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
