//! `x-mcp-header` annotations: the arguments that a client repeats as `Mcp-Param-…` headers.
//!
//! Clients must drop a tool with an invalid annotation, so all annotations are checked when the
//! tool is registered.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

use serde_json::Value;

use super::{
    error::SchemaError,
    subschemas::{Inside, Member, inside, pointer_to, push_step},
};

const ANNOTATION: &str = "x-mcp-header";

/// An argument that a header repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderParam {
    /// Header name after `Mcp-Param-`, as in the schema.
    pub header: String,
    /// Property names that lead from the root to the argument.
    pub path: Vec<String>,
    /// Type of the argument.
    pub kind: HeaderKind,
}

impl HeaderParam {
    /// Returns the argument that the header repeats, unless it is absent or `null`.
    pub fn argument<'a>(&self, arguments: &'a Value) -> Option<&'a Value> {
        let argument = self.path.iter().try_fold(arguments, |value, key| value.get(key));
        argument.filter(|value| !value.is_null())
    }

    /// Returns whether `header` repeats `argument`. Returns `true` for an argument of the wrong
    /// type, which the schema rejects.
    pub fn is_repeated(&self, argument: &Value, header: &str) -> bool {
        match (self.kind, argument) {
            (HeaderKind::String, Value::String(text)) => text == header,
            (HeaderKind::Boolean, Value::Bool(flag)) => {
                header == if *flag { "true" } else { "false" }
            }
            // Compared as numbers: `42.0` equals `42`.
            (HeaderKind::Integer, Value::Number(number)) => {
                header.parse::<f64>().is_ok_and(|header| number.as_f64() == Some(header))
            }
            _ => true,
        }
    }
}

/// The type of an annotated argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// Repeated as text, in Base64 if necessary.
    String,
    /// Repeated in decimal.
    Integer,
    /// Repeated as `true` or `false`.
    Boolean,
}

/// Returns the annotated arguments of an input schema, in the order of its properties.
pub fn header_params(schema: &Value) -> Result<Vec<HeaderParam>, SchemaError> {
    let mut found: Vec<HeaderParam> = Vec::new();
    let mut open = vec![Place { pointer: String::new(), schema, path: Some(Vec::new()) }];
    while let Some(place) = open.pop() {
        if let Some(annotation) = place.schema.get(ANNOTATION) {
            let param = read(&place, annotation)?;
            if let Some(twin) = found.iter().find(|known| is_same(known, &param)) {
                let twin = twin.path.join(".");
                let name = &param.header;
                return Err(refused(
                    &place.pointer,
                    format!(
                        "is `{name}`, which `{twin}` already has (names ignore case); choose \
                         another name"
                    ),
                ));
            }
            found.push(param);
        }
        hidden(&place)?;
        let children = inside(place.schema);
        // The children are reversed, because the stack returns the last one first.
        open.extend(children.iter().rev().map(|child| place.child(child)));
    }
    Ok(found)
}

/// A schema in the document.
struct Place<'a> {
    pointer: String,
    schema: &'a Value,
    /// Property names that lead here; `None` if the path contains another keyword.
    path: Option<Vec<String>>,
}

impl<'a> Place<'a> {
    fn child(&self, child: &Inside<'a>) -> Self {
        let path = match (&self.path, child.keyword, child.member) {
            (Some(path), "properties", Some(Member::Name(name))) => {
                Some(path.iter().cloned().chain([name.to_owned()]).collect())
            }
            _ => None,
        };
        Place { pointer: pointer_to(&self.pointer, child), schema: child.schema, path }
    }
}

fn read(place: &Place<'_>, annotation: &Value) -> Result<HeaderParam, SchemaError> {
    let refused = |reason: String| Err(refused(&place.pointer, reason));
    let Some(header) = annotation.as_str() else {
        return refused(format!("must be a string, not {annotation}"));
    };
    if header.is_empty() {
        return refused("is empty; give the header a name".to_owned());
    }
    if let Some(character) = header.chars().find(|character| !is_token(*character)) {
        return refused(format!(
            "is {header:?}, but {character:?} is not allowed in a header name; use letters, digits \
             and `-`"
        ));
    }
    let path = match &place.path {
        Some(path) if !path.is_empty() => path.clone(),
        _ => {
            return refused(format!(
                "(`{header}`) is not on a property that is reached from the root through \
                 `properties` alone; a header cannot come from an array, an alternative or a \
                 reference, so move the property or remove the annotation"
            ));
        }
    };
    let kind = match place.schema.get("type") {
        Some(Value::String(name)) if name == "string" => HeaderKind::String,
        Some(Value::String(name)) if name == "integer" => HeaderKind::Integer,
        Some(Value::String(name)) if name == "boolean" => HeaderKind::Boolean,
        other => {
            let found = other.map_or("missing".to_owned(), Value::to_string);
            return refused(format!(
                "(`{header}`) needs the type `string`, `integer` or `boolean`, alone and not in a \
                 list, but the type is {found}; for an `Option<String>` write \
                 `#[schemars(with = \"String\")]` and `#[serde(default)]` beside it"
            ));
        }
    };
    Ok(HeaderParam { header: header.to_owned(), path, kind })
}

/// Rejects an annotation below an unknown keyword. It would have no effect, and clients that search
/// the whole document for annotations would drop the tool.
fn hidden(place: &Place<'_>) -> Result<(), SchemaError> {
    const DATA: [&str; 5] = ["const", "default", "enum", "examples", ANNOTATION];
    let known: Vec<&str> = inside(place.schema).iter().map(|child| child.keyword).collect();
    for (keyword, value) in place.schema.as_object().into_iter().flatten() {
        if !DATA.contains(&keyword.as_str())
            && !known.contains(&keyword.as_str())
            && mentions(value)
        {
            let mut pointer = place.pointer.clone();
            push_step(&mut pointer, keyword);
            let reason = format!("is below `{keyword}`, which has no properties; remove it");
            return Err(refused(&pointer, reason));
        }
    }
    Ok(())
}

/// Returns whether the annotation occurs anywhere in a value. The depth limit of the parser bounds
/// the recursion.
fn mentions(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.contains_key(ANNOTATION) || members.values().any(mentions)
        }
        Value::Array(items) => items.iter().any(mentions),
        _ => false,
    }
}

fn is_same(one: &HeaderParam, other: &HeaderParam) -> bool {
    one.header.eq_ignore_ascii_case(&other.header)
}

/// Returns whether a character is a `tchar` of RFC 9110.
fn is_token(character: char) -> bool {
    character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character)
}

fn refused(at: &str, reason: String) -> SchemaError {
    SchemaError::Header { at: at.to_owned(), reason }
}
