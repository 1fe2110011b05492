//! Arguments of a tool that HTTP headers repeat (`x-mcp-header`).

use outlive_schema::{HeaderParam, header_params};
use serde_json::{Value, value::RawValue};

use crate::client::tool_cache::header_values;

/// The arguments of a tool that modern HTTP requests repeat as headers.
#[derive(Clone, Debug, Default)]
pub struct ParamHeaders {
    params: Vec<HeaderParam>,
}

impl ParamHeaders {
    /// Reads the input schema of a tool.
    ///
    /// # Errors
    ///
    /// Returns why the annotations are invalid. Such a tool cannot be called over HTTP.
    pub fn read(input_schema: &RawValue) -> Result<Self, String> {
        // Parses only schemas that contain the keyword, because almost none do.
        if !input_schema.get().contains("x-mcp-header") {
            return Ok(Self::default());
        }
        let schema: Value =
            serde_json::from_str(input_schema.get()).map_err(|error| error.to_string())?;
        let params = header_params(&schema).map_err(|error| error.to_string())?;
        Ok(Self { params })
    }

    /// Returns whether no argument is repeated.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Returns the names and values for a call with these arguments, the JSON text of an object.
    pub fn values(&self, arguments: &str) -> Vec<(String, String)> {
        header_values(&self.params, arguments)
    }
}
