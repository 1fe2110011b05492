//! A schema that is ready to be sent to clients and to check what they send.
//!
//! Built once, when a tool is registered; whatever is wrong with a schema is said then. A check
//! walks the text against a compiled [`Tree`] first. Only if that leaves a doubt, the text is
//! parsed into a value, and a validator decides and finds the reason: ours, or that of `jsonschema` for
//! a schema that ours does not cover.
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

/// Up to how many bytes of text a reason is looked for. The reasons of alternatives hold an error
/// for every bad item of an array, hundreds of bytes each, and a hostile text is nothing but bad
/// items; the verdict alone needs none of that.
const MAX_EXPLAINED: usize = 256 * 1024;

/// A JSON Schema, compiled.
#[derive(Debug)]
pub struct Schema {
    text: Arc<RawValue>,
    tree: Tree,
    /// Parsed at the first doubt: most servers never have one.
    document: OnceLock<Value>,
    /// Settles doubts where our own validator does not cover the schema.
    full: Option<FullSchema>,
    headers: Vec<HeaderParam>,
    role: Role,
    /// Deserialising refuses everything that the schema refuses, except that the root could be an
    /// array.
    proven: bool,
}

/// What a schema describes.
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
    /// The schema of the arguments that `T` is deserialised from.
    ///
    /// Arguments are always an object. A unit type takes none, and its schema is that of an object
    /// without members; its value has to be deserialised from `null`.
    pub fn of_input<T: JsonSchema + DeserializeOwned>() -> Result<Self, SchemaError> {
        let (schema, name) = generate::<T>(Contract::Deserialize);
        let schema = as_object(schema, &name)?;
        let mut compiled =
            Self::compile(&to_text(schema.as_value(), declared_fields::<T>())?, Role::Input)?;
        compiled.proven = evidence::deserialising_suffices::<T>(schema.as_value());
        Ok(compiled)
    }

    /// The schema of the structured content that `T` is serialised to.
    pub fn of_output<T: JsonSchema>() -> Result<Self, SchemaError> {
        let (schema, _) = generate::<T>(Contract::Serialize);
        Self::compile(&to_text(schema.as_value(), &[])?, Role::Output)
    }

    /// A hand-written schema of a tool's arguments.
    pub fn input_from_json(text: &RawValue) -> Result<Self, SchemaError> {
        Self::compile(text, Role::Input)
    }

    /// A hand-written schema of a tool's structured content.
    pub fn output_from_json(text: &RawValue) -> Result<Self, SchemaError> {
        Self::compile(text, Role::Output)
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
            serde_json::from_str(self.text.get()).expect("it was parsed when it was compiled")
        })
    }

    /// The schema as it was written, for `tools/list`.
    pub fn text(&self) -> &Arc<RawValue> {
        &self.text
    }

    /// The arguments that clients repeat as headers; none for an output.
    pub fn headers(&self) -> &[HeaderParam] {
        &self.headers
    }

    /// Checks the text of a value.
    pub fn check(&self, text: &str) -> Result<(), Violation> {
        // A doubt at the root is one about every value: then the walk is not worth starting.
        if !matches!(self.tree.node(Tree::ROOT), Node::Doubt) && walk::fits(&self.tree, text) {
            return Ok(());
        }
        self.settle(text)
    }

    /// Checks what deserialising does not: `text` has been, or will be, deserialised into the type
    /// of [`Schema::of_input`].
    pub fn check_typed(&self, text: &str) -> Result<(), Violation> {
        // A derived `Deserialize` takes a struct from an array too, which no schema allows.
        if self.proven && text.trim_start().starts_with('{') {
            return Ok(());
        }
        self.check(text)
    }

    /// Says what is wrong with a text that could not be deserialised.
    pub fn explain(&self, text: &str, error: &serde_json::Error) -> Violation {
        match self.settle(text) {
            Err(violation) if text.len() <= MAX_EXPLAINED => violation,
            _ => Violation::from_serde(self.role.root(), text, error),
        }
    }

    /// The full check, for a text that is in doubt.
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

/// The schema that `schemars` writes for a type, and the type's name.
fn generate<T: JsonSchema>(contract: Contract) -> (schemars::Schema, String) {
    // `{}` instead of `true`: where the protocol's own schema says "object", clients insist on one.
    let mut objects = ReplaceBoolSchemas::default();
    objects.skip_additional_properties = true;
    let mut settings = SchemaSettings::draft2020_12().with_transform(objects);
    settings.contract = contract;
    // 2020-12 is what a client assumes.
    settings.meta_schema = None;
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let name = T::schema_name().into_owned();
    // The name of a Rust type tells a model nothing; a title somebody chose stays.
    if schema.get("title").is_some_and(|title| *title == *name) {
        schema.remove("title");
    }
    (schema, name)
}

/// Makes sure that the root says `"type": "object"`.
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

/// Whether a schema without a `type` is about objects: each of its alternatives is, or it has none.
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
