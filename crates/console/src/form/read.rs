//! Reads the values that a browser submits as the content of an input response.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::field::{Choice, Control, Field};
use crate::urlencoded::Values;

/// The content of an input response, and the errors by field name.
pub(crate) struct Answer {
    pub(crate) content: Map<String, Value>,
    /// Each error is a predicate whose subject is the field.
    pub(crate) errors: BTreeMap<String, String>,
}

/// Reads the values of all fields. `check` validates the value of one field.
pub(crate) fn read(
    fields: &[Field],
    values: &Values,
    check: impl Fn(&str, &Value) -> Result<(), String>,
) -> Answer {
    let mut answer = Answer { content: Map::new(), errors: BTreeMap::new() };
    for field in fields {
        let name = field.name.clone();
        let checked = value(field, values).and_then(|value| match value {
            Some(value) => check(&name, &value).map(|()| Some(value)),
            None if field.is_required => Err("is required".to_owned()),
            None => Ok(None),
        });
        match checked {
            Ok(Some(value)) => drop(answer.content.insert(name, value)),
            Ok(None) => {}
            Err(error) => drop(answer.errors.insert(name, error)),
        }
    }
    answer
}

/// Returns the value of a field, or `None` if it stays empty.
fn value(field: &Field, values: &Values) -> Result<Option<Value>, String> {
    let input_name = field.input_name();
    let typed = values.get(&input_name).filter(|text| !text.is_empty());
    match &field.control {
        Control::Many { choices, .. } => {
            let chosen = values.all(&input_name).map(|at| choice(choices, at));
            let chosen: Vec<Value> = chosen.collect::<Result<_, _>>()?;
            let is_empty = chosen.is_empty() && !field.is_required;
            Ok((!is_empty).then_some(Value::Array(chosen)))
        }
        control => typed.map(|text| one(control, text)).transpose(),
    }
}

fn one(control: &Control, text: &str) -> Result<Value, String> {
    match control {
        Control::One { choices, .. } => choice(choices, text),
        Control::Number { is_integer, .. } => number(text.trim(), *is_integer),
        Control::YesNo { .. } => match text {
            "yes" => Ok(Value::Bool(true)),
            "no" => Ok(Value::Bool(false)),
            _ => Err("must be yes or no".to_owned()),
        },
        Control::Json => serde_json::from_str(text).map_err(|_| "must be JSON".to_owned()),
        // Browsers submit every line break as CR LF.
        Control::Lines { .. } => Ok(Value::from(text.replace("\r\n", "\n"))),
        _ => Ok(Value::from(text)),
    }
}

/// Returns the choice at a submitted position.
fn choice(choices: &[Choice], at: &str) -> Result<Value, String> {
    let at: Option<usize> = at.parse().ok();
    let choice = at.and_then(|at| choices.get(at));
    choice.map(|it| Value::from(it.value.as_str())).ok_or_else(|| "is not a choice".to_owned())
}

fn number(text: &str, is_integer: bool) -> Result<Value, String> {
    let what = if is_integer { "must be a whole number" } else { "must be a number" };
    // People also write a plus sign.
    let text = text.strip_prefix('+').unwrap_or(text);
    text.parse::<Number>().map(Value::Number).map_err(|_| what.to_owned())
}

#[cfg(test)]
mod tests {
    use outlive::wire::RequestedSchema;
    use serde_json::{Value, json};

    use super::read;
    use crate::{form::fields, urlencoded::Values};

    /// Reads a body with a form whose checks accept everything.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "callers pass a `json!` value in place")]
    fn check(fields_of: Value, required: &[&str], body: &str, content: Value, errors: Value) {
        let form = json!({"type": "object", "properties": fields_of, "required": required});
        let form: RequestedSchema = serde_json::from_value(form).expect("is a form");
        let answer = read(&fields(&form), &Values::decode(body.as_bytes()), |_, _| Ok(()));
        assert_eq!((Value::Object(answer.content), json!(answer.errors)), (content, errors));
    }

    #[test]
    fn values_have_the_types_of_their_fields() {
        check(
            json!({
                "text": {"type": "string"},
                "count": {"type": "integer"},
                "share": {"type": "number"},
                "sure": {"type": "boolean"},
                "size": {"type": "string", "enum": ["s", "l"]},
                "tops": {"type": "array", "items": {"anyOf": [
                    {"const": "c", "title": "Cheese"}, {"const": "o", "title": "Olives"}]}},
                "other": {"type": "object"},
            }),
            &["text"],
            "field.text=a%0D%0Ab&field.count=+%2B18446744073709551615+&field.share=-2.50&field.sure=no\
             &field.size=1&field.tops=0&field.tops=1&field.other=%7B%22a%22%3A1%7D&field.more=x",
            json!({
                "text": "a\nb", "count": 18_446_744_073_709_551_615_u64, "share": -2.5, "sure": false,
                "size": "l", "tops": ["c", "o"], "other": {"a": 1},
            }),
            json!({}),
        );
    }

    #[test]
    fn empty_optional_field_is_absent_and_empty_required_field_is_an_error() {
        let form = json!({
            "a": {"type": "string"}, "b": {"type": "string"}, "n": {"type": "integer"},
            "m": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
            "w": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
        });
        let body = "field.a=&field.b=&field.n=";
        let errors = json!({"a": "is required", "n": "is required"});
        check(form, &["a", "n", "w"], body, json!({"w": []}), errors);
    }

    #[test]
    fn value_of_another_type_is_an_error() {
        let form = json!({
            "n": {"type": "integer"}, "x": {"type": "number"}, "b": {"type": "boolean"},
            "e": {"type": "string", "enum": ["x"]}, "j": {"type": "object"},
        });
        let body = "field.n=three&field.x=1e&field.b=maybe&field.e=7&field.j=%7B";
        let errors = json!({
            "n": "must be a whole number", "x": "must be a number", "b": "must be yes or no",
            "e": "is not a choice", "j": "must be JSON",
        });
        check(form, &[], body, json!({}), errors);
    }
}
