//! Validates the schemas of a tool when the file is read, so that every command of the program
//! reports the same errors, with the line.

use outlive::server::{Server, Tool};
use serde_json::{Map, Value as Json, json, value::to_raw_value};

/// Validates a schema of arguments.
pub(super) fn input(schema: &Json) -> Result<(), String> {
    build(schema, None)
}

/// Validates a schema of structured content.
pub(super) fn output(schema: &Json) -> Result<(), String> {
    build(&json!({"type": "object"}), Some(schema))
}

/// Validates a value against the schema of an argument.
pub(super) fn value(schema: &Map<String, Json>, value: &Json) -> Result<(), String> {
    let schema = Json::Object(schema.clone());
    // An invalid schema is reported elsewhere.
    let Ok(validator) = jsonschema::validator_for(&schema) else { return Ok(()) };
    validator.validate(value).map_err(|error| error.to_string())
}

fn build(input: &Json, output: Option<&Json>) -> Result<(), String> {
    let raw = |schema: &Json| to_raw_value(schema).expect("a JSON value can be serialized");
    let mut tool = Tool::new("tool", || async { "" }).input_schema(raw(input));
    if let Some(output) = output {
        tool = tool.output_schema(raw(output));
    }
    Server::builder("trial", "1").tool(tool).build().map(|_| ()).map_err(|error| error.to_string())
}
