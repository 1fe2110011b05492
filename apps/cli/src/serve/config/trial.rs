//! Whether a server takes the schemas of a tool: they are tried when the file is read, so that every
//! command of the program refuses the same files, with the line.

use outlive::server::{Server, Tool};
use serde_json::{Map, Value as Json, json, value::to_raw_value};

/// Tries a schema of arguments.
pub(super) fn input(schema: &Json) -> Result<(), String> {
    build(schema, None)
}

/// Tries a schema of structured content.
pub(super) fn output(schema: &Json) -> Result<(), String> {
    build(&json!({"type": "object"}), Some(schema))
}

/// Checks a value against the schema of an argument.
pub(super) fn value(schema: &Map<String, Json>, value: &Json) -> Result<(), String> {
    let schema = Json::Object(schema.clone());
    // Whether the schema itself can be used is said elsewhere.
    let Ok(validator) = jsonschema::validator_for(&schema) else { return Ok(()) };
    validator.validate(value).map_err(|error| error.to_string())
}

fn build(input: &Json, output: Option<&Json>) -> Result<(), String> {
    let raw = |schema: &Json| to_raw_value(schema).expect("JSON can be written as JSON");
    let mut tool = Tool::new("tool", || async { "" }).input_schema(raw(input));
    if let Some(output) = output {
        tool = tool.output_schema(raw(output));
    }
    Server::builder("trial", "1").tool(tool).build().map(|_| ()).map_err(|error| error.to_string())
}
