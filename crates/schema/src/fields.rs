//! The fields of a schema, for user interfaces: the arguments of a tool or the fields of a form.
//!
//! The parser is lenient: an unknown property becomes a field for any JSON value, and the server
//! validates the value.

use serde_json::{Map, Value};

/// Maximum number of nested references and lists that are followed. A schema may refer to itself,
/// and hand-written schemas are not deeper.
const DEPTH: usize = 8;

/// An argument of a tool, or a field of a form.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Field {
    /// Name in the schema.
    pub name: String,
    /// Title in the schema.
    pub title: Option<String>,
    /// Description in the schema.
    pub description: Option<String>,
    /// Whether the field is required.
    pub is_required: bool,
    /// Default value, unless it is `null`.
    pub default: Option<Value>,
    /// Kind of value.
    pub kind: FieldKind,
    /// Description of the valid values, such as `integer, 1 to 10`.
    pub hint: String,
}

/// Kind of value of a field.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FieldKind {
    /// A string.
    Text,
    /// An integer.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// One of several choices.
    One(Vec<FieldChoice>),
    /// An array of several choices.
    Many(Vec<FieldChoice>),
    /// An array of values of one kind.
    List(Box<FieldKind>),
    /// Any JSON.
    Json,
}

/// A choice with its label.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FieldChoice {
    /// Value to send.
    pub value: Value,
    /// Label for people.
    pub label: String,
}

impl Field {
    /// Returns the title, or the name if the field has no title.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// Returns the fields of an object schema, in the order of its map: by name, unless the program
/// enables the feature `preserve_order` of `serde_json`.
pub fn fields(schema: &Value) -> Vec<Field> {
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let field = |(name, named): (&String, &Value)| {
        let property = resolved(schema, named);
        // Keywords beside a `$ref` describe this field, so they take precedence over the target's.
        let said = |key| named.get(key).or_else(|| property.get(key));
        let text = |key| said(key).and_then(Value::as_str).map(str::to_owned);
        let kind = kind_of(schema, property, DEPTH);
        Field {
            name: name.clone(),
            title: text("title"),
            description: text("description"),
            is_required: required.contains(&name.as_str()),
            default: said("default").filter(|default| !default.is_null()).cloned(),
            hint: hint(&kind, property),
            kind,
        }
    };
    properties.map(|properties| properties.iter().map(field).collect()).unwrap_or_default()
}

/// Returns whether an object may have members that its schema does not name.
///
/// JSON Schema allows them by default. Here, a schema with `properties` and without
/// `additionalProperties` does not.
pub fn is_open(schema: &Value) -> bool {
    match schema.get("additionalProperties") {
        Some(Value::Bool(open)) => *open,
        Some(_) => true,
        None => schema.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty),
    }
}

/// Resolves references, and unions of one schema with `null`.
fn resolved<'a>(schema: &'a Value, mut property: &'a Value) -> &'a Value {
    for _ in 0..DEPTH {
        if let Some(place) = property.get("$ref").and_then(Value::as_str) {
            let Some(found) = place.strip_prefix('#').and_then(|place| schema.pointer(place))
            else {
                return property;
            };
            property = found;
            continue;
        }
        let alternatives =
            ["anyOf", "oneOf"].into_iter().find_map(|key| property.get(key)?.as_array());
        let is_null = |it: &&Value| it.get("type").and_then(Value::as_str) == Some("null");
        let mut others = alternatives.into_iter().flatten().filter(|it| !is_null(it));
        match (others.next(), others.next()) {
            (Some(only), None) if only.get("const").is_none() => property = only,
            _ => return property,
        }
    }
    property
}

fn kind_of(schema: &Value, property: &Value, depth: usize) -> FieldKind {
    if let Some(choices) = choices(property) {
        return FieldKind::One(choices);
    }
    let named = property.get("type");
    let kind = named.and_then(Value::as_str).or_else(|| {
        let kinds = named?.as_array()?.iter().filter_map(Value::as_str);
        kinds.into_iter().find(|kind| *kind != "null")
    });
    match kind {
        Some("string") => FieldKind::Text,
        Some("integer") => FieldKind::Integer,
        Some("number") => FieldKind::Number,
        Some("boolean") => FieldKind::Boolean,
        Some("array") => {
            let items = property.get("items").filter(|_| depth > 0);
            let items = items.map(|items| resolved(schema, items));
            match items.map(|items| (choices(items), kind_of(schema, items, depth - 1))) {
                Some((Some(choices), _)) => FieldKind::Many(choices),
                Some((None, kind)) => FieldKind::List(Box::new(kind)),
                None => FieldKind::List(Box::new(FieldKind::Json)),
            }
        }
        _ => FieldKind::Json,
    }
}

/// Returns the choices of a property, if it has a fixed set of values.
fn choices(property: &Value) -> Option<Vec<FieldChoice>> {
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        let names = property.get("enumNames").and_then(Value::as_array);
        let label = |at: usize, value: &Value| {
            let name = names.and_then(|names| names.get(at)?.as_str()).map(str::to_owned);
            name.unwrap_or_else(|| plain_text(value))
        };
        let choice = |(at, value): (usize, &Value)| FieldChoice {
            value: value.clone(),
            label: label(at, value),
        };
        return Some(values.iter().enumerate().map(choice).collect());
    }
    let titled = ["oneOf", "anyOf"].into_iter().find_map(|key| property.get(key)?.as_array())?;
    let choice = |it: &Value| {
        let value = it.get("const")?.clone();
        let title = ["title", "description"].into_iter().find_map(|key| it.get(key)?.as_str());
        let label = title.map_or_else(|| plain_text(&value), str::to_owned);
        Some(FieldChoice { value, label })
    };
    titled.iter().map(choice).collect()
}

/// Formats a value as plain text.
pub fn plain_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain_text).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Describes the valid values of a field.
fn hint(kind: &FieldKind, property: &Value) -> String {
    let number = |key| property.get(key).and_then(Value::as_f64);
    let mut words = vec![match kind {
        FieldKind::Text => "text".to_owned(),
        FieldKind::Integer => "integer".to_owned(),
        FieldKind::Number => "number".to_owned(),
        FieldKind::Boolean => "true or false".to_owned(),
        FieldKind::One(choices) => format!("one of {}", values(choices)),
        FieldKind::Many(choices) => format!("some of {}", values(choices)),
        FieldKind::List(_) => "list".to_owned(),
        FieldKind::Json => "JSON".to_owned(),
    }];
    match (number("minimum"), number("maximum")) {
        (Some(least), Some(most)) => words.push(format!("{least} to {most}")),
        (Some(least), None) => words.push(format!("at least {least}")),
        (None, Some(most)) => words.push(format!("at most {most}")),
        (None, None) => {}
    }
    let format = property.get("format").and_then(Value::as_str);
    words.extend(format.filter(|_| matches!(kind, FieldKind::Text)).map(str::to_owned));
    for (least, most, unit) in
        [("minLength", "maxLength", "characters"), ("minItems", "maxItems", "values")]
    {
        words.extend(number(least).map(|least| format!("at least {least} {unit}")));
        words.extend(number(most).map(|most| format!("at most {most} {unit}")));
    }
    words.join(", ")
}

fn values(choices: &[FieldChoice]) -> String {
    choices.iter().map(|choice| plain_text(&choice.value)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{FieldKind, fields, is_open};

    #[test]
    fn fields_are_read_through_references_and_nulls() {
        let schema = json!({
            "properties": {
                "a_size": {"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}]},
                "b_count": {"type": ["integer", "null"], "minimum": 1, "maximum": 10},
                "c_toppings": {"type": "array", "items": {"anyOf": [{"const": "c", "title": "Cheese"}]}},
                "d_tags": {"type": "array", "items": {"type": "string"}},
                "e_any": {},
            },
            "required": ["b_count"],
            "$defs": {"Size": {"type": "string", "enum": ["small", "large"]}},
        });
        let fields = fields(&schema);
        let hints: Vec<&str> = fields.iter().map(|field| field.hint.as_str()).collect();
        assert_eq!(hints, ["one of small, large", "integer, 1 to 10", "some of c", "list", "JSON"]);
        assert!(
            matches!(&fields[2].kind, FieldKind::Many(choices) if choices[0].label == "Cheese")
        );
        assert!(
            matches!(&fields[3].kind, FieldKind::List(kind) if matches!(**kind, FieldKind::Text))
        );
        assert!(fields[1].is_required && !fields[0].is_required);
    }

    #[test]
    fn self_referencing_schema_becomes_any_json() {
        let schema = json!({"properties": {"a": {"$ref": "#/properties/a"}}});
        assert!(matches!(fields(&schema)[0].kind, FieldKind::Json));
    }

    #[test]
    fn self_referencing_array_schema_terminates() {
        let schema = json!({"properties": {
            "pair": {"type": "array", "items": {"anyOf": [{"$ref": "#/properties/pair"}, {"type": "null"}]}},
            "root": {"type": "array", "items": {"$ref": "#"}},
            "tree": {"type": "array", "items": {"$ref": "#/properties/tree"}},
            "vary": {"allOf": [{"$ref": "#/properties/vary"}]},
        }});
        let hints: Vec<String> = fields(&schema).into_iter().map(|field| field.hint).collect();
        assert_eq!(hints, ["list", "list", "list", "JSON"]);
    }

    #[test]
    fn schema_with_properties_is_closed_by_default() {
        assert!(is_open(&json!({})));
        assert!(is_open(&json!({"properties": {"a": {}}, "additionalProperties": true})));
        assert!(!is_open(&json!({"properties": {"a": {}}})));
    }
}
