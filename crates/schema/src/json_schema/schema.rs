//! A compiled schema, which clients receive and which validates their values.
//!
//! Built once, when a tool is registered; errors in a schema are reported then. A check first walks
//! the text with the compiled [`Tree`]. If the result is undecided, the text is parsed into a
//! value, and a validator decides and finds the reason. The validator is the built-in one, or that
//! of `jsonschema` for schemas that the built-in one does not cover.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic#json-schema-usage>

use std::sync::{Arc, OnceLock};

use schemars::{
    JsonSchema,
    generate::{Contract, SchemaSettings},
    json_schema,
    transform::ReplaceBoolSchemas,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, value::RawValue};

use super::{
    compile::compile,
    error::SchemaError,
    evidence,
    failure::Failure,
    full::FullSchema,
    header_params::{HeaderParam, header_params},
    schema_text::to_text,
    subschemas::survey,
    supported,
    tree::{Node, Tree},
    validate::Validator,
    violation::Violation,
    walk,
};
use crate::field_order::declared_fields;

/// Maximum bytes of text for which a reason is searched. For alternatives, each invalid array item
/// costs an error of hundreds of bytes, and a hostile text consists of invalid items. The verdict
/// alone does not have this cost.
const MAX_EXPLAINED: usize = 256 * 1024;

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct Schema {
    text: Arc<RawValue>,
    tree: Tree,
    /// Parsed on first use: most servers never need it.
    document: OnceLock<Value>,
    /// Validator for schemas that the built-in validator does not cover.
    full: Option<FullSchema>,
    headers: Vec<HeaderParam>,
    role: Role,
    /// Whether deserialization rejects every value that the schema rejects, except an array as the
    /// root.
    proven: bool,
}

/// The use of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Input,
    Output,
}

impl Role {
    fn root(self) -> &'static str {
        match self {
            Self::Input => "arguments",
            Self::Output => "structuredContent",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

impl Schema {
    /// Creates the schema of the arguments that `T` is deserialized from.
    ///
    /// Arguments are always an object. For a unit type, the schema is an object without members,
    /// and the value must be deserialized from `null`.
    pub fn of_input<T: JsonSchema + DeserializeOwned>() -> Result<Self, SchemaError> {
        let (schema, name) = generate::<T>(Contract::Deserialize);
        let schema = as_object(schema, &name)?;
        let mut compiled =
            Self::compile(&to_text(schema.as_value(), declared_fields::<T>())?, Role::Input)?;
        compiled.proven = evidence::deserialising_suffices::<T>(schema.as_value());
        Ok(compiled)
    }

    /// Creates the schema of the structured content that `T` serializes to.
    pub fn of_output<T: JsonSchema>() -> Result<Self, SchemaError> {
        let (schema, _) = generate::<T>(Contract::Serialize);
        Self::compile(&to_text(schema.as_value(), &[])?, Role::Output)
    }

    /// Compiles a hand-written schema of a tool's arguments.
    pub fn input_from_json(text: &RawValue) -> Result<Self, SchemaError> {
        Self::compile(text, Role::Input)
    }

    /// Compiles a hand-written schema of a tool's structured content.
    pub fn output_from_json(text: &RawValue) -> Result<Self, SchemaError> {
        Self::compile(text, Role::Output)
    }

    /// Returns the schema of a tool of another server, against which nothing is validated here. Its
    /// headers apply if they are valid.
    pub fn relayed_input(text: Arc<RawValue>) -> Self {
        let document: Value = serde_json::from_str(text.get()).unwrap_or_default();
        let headers = header_params(&document).unwrap_or_default();
        let tree = Tree { nodes: vec![Node::Anything] };
        let document = OnceLock::from(Value::Object(serde_json::Map::new()));
        Self { text, tree, document, full: None, headers, role: Role::Input, proven: true }
    }

    fn compile(text: &RawValue, role: Role) -> Result<Self, SchemaError> {
        let document: Value = serde_json::from_str(text.get()).map_err(SchemaError::NotJson)?;
        if role == Role::Input && document.get("type").is_none_or(|kind| kind != "object") {
            return Err(SchemaError::NotAnObject {
                name: "inputSchema".to_owned(),
                found: "something else (its root lacks `\"type\": \"object\"`)".to_owned(),
            });
        }
        let survey = survey(&document)?;
        let headers = match role {
            Role::Input => header_params(&document)?,
            Role::Output => Vec::new(),
        };
        let full = match supported::check(&document, survey) {
            Ok(()) => None,
            Err(why) => Some(FullSchema::build(&document, survey.dialect, why, role.name())?),
        };
        let (text, tree) = (text.to_owned().into(), compile(&document, survey));
        Ok(Self { text, tree, document: OnceLock::new(), full, headers, role, proven: false })
    }

    fn document(&self) -> &Value {
        self.document.get_or_init(|| {
            serde_json::from_str(self.text.get()).expect("the text was parsed before")
        })
    }

    /// Returns the schema text for `tools/list`.
    pub fn text(&self) -> &Arc<RawValue> {
        &self.text
    }

    /// Returns the arguments that clients repeat as headers. Empty for an output schema.
    pub fn headers(&self) -> &[HeaderParam] {
        &self.headers
    }

    /// Validates the text of a value.
    pub fn check(&self, text: &str) -> Result<(), Violation> {
        // With a doubt at the root, the walk cannot decide any value.
        if !matches!(self.tree.node(Tree::ROOT), Node::Doubt) && walk::fits(&self.tree, text) {
            return Ok(());
        }
        self.settle(text)
    }

    /// Performs the checks that deserialization does not. `text` must also be deserialized into the
    /// type of [`Schema::of_input`].
    pub fn check_typed(&self, text: &str) -> Result<(), Violation> {
        // A derived `Deserialize` also accepts an array for a struct, which no schema allows.
        if self.proven && text.trim_start().starts_with('{') {
            return Ok(());
        }
        self.check(text)
    }

    /// Returns why a text could not be deserialized.
    pub fn explain(&self, text: &str, error: &serde_json::Error) -> Violation {
        match self.settle(text) {
            Err(violation) if text.len() <= MAX_EXPLAINED => violation,
            _ => Violation::from_serde(self.role.root(), text, error),
        }
    }

    /// Performs the full validation of an undecided text.
    fn settle(&self, text: &str) -> Result<(), Violation> {
        let root = self.role.root();
        let value: Value = serde_json::from_str(text)
            .map_err(|error| Violation::from_serde(root, text, &error))?;
        let document = self.document();
        let ours = || Validator::new(document, text.len());
        if self.full.as_ref().map_or_else(|| ours().fits(&value), |full| full.fits(&value)) {
            return Ok(());
        }
        let violation = |failure: &Failure<'_>| Violation::from_failure(root, failure);
        let explained = match &self.full {
            _ if text.len() > MAX_EXPLAINED => None,
            Some(full) => full.explain(document, &value, violation),
            None => ours().first_failure(&value).as_ref().map(violation),
        };
        Err(explained.unwrap_or_else(|| Violation::unexplained(root, text)))
    }
}

/// Returns the schema that `schemars` generates for a type, and the name of the type.
fn generate<T: JsonSchema>(contract: Contract) -> (schemars::Schema, String) {
    // `{}` instead of `true`: MCP's schema requires objects here, and clients enforce it.
    let mut objects = ReplaceBoolSchemas::default();
    objects.skip_additional_properties = true;
    let mut settings = SchemaSettings::draft2020_12().with_transform(objects);
    settings.contract = contract;
    // `$schema` is omitted, because 2020-12 is the default of MCP.
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let name = T::schema_name().into_owned();
    // The name of a Rust type is useless to a model. A title from the author stays.
    if schema.get("title").is_some_and(|title| *title == *name) {
        schema.remove("title");
    }
    (schema, name)
}

/// Ensures that the root has `"type": "object"`.
fn as_object(mut schema: schemars::Schema, name: &str) -> Result<schemars::Schema, SchemaError> {
    let found = match schema.get("type") {
        Some(kind) if kind == "object" => return Ok(schema),
        Some(kind) if kind == "null" => {
            return Ok(json_schema!({ "type": "object", "additionalProperties": false }));
        }
        Some(kind) => kind.to_string(),
        None if only_objects(schema.as_value(), schema.as_value()) => {
            schema.insert("type".to_owned(), "object".into());
            return Ok(schema);
        }
        None => "something else in one of its variants".to_owned(),
    };
    Err(SchemaError::NotAnObject { name: name.to_owned(), found })
}

/// Returns whether a schema without `type` accepts only objects, judging by the types of its
/// alternatives.
fn only_objects(document: &Value, schema: &Value) -> bool {
    let branches = schema.get("oneOf").or_else(|| schema.get("anyOf")).and_then(Value::as_array);
    branches.is_none_or(|branches| {
        branches.iter().all(|branch| {
            let target = branch.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| document.pointer(target.strip_prefix('#')?));
            let kind = branch.get("type").or_else(|| target?.get("type"));
            kind.is_some_and(|kind| kind == "object")
        })
    })
}
