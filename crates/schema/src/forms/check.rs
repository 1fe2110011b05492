//! Validates the content of an elicitation response against the form.

use outlive_wire::{
    NumberKind, NumberSchema, PrimitiveSchemaDefinition as Field, RequestedSchema, StringFormat,
    StringSchema,
};
use serde_json::{Map, Number, Value};

/// Validates the content of an elicitation response. Returns it in a form that Rust types can
/// deserialize. Ignores members that the form does not have.
pub fn check(schema: &RequestedSchema, content: &str) -> Result<Map<String, Value>, String> {
    let mut content: Map<String, Value> =
        serde_json::from_str(content).map_err(|_| "the content must be an object".to_owned())?;
    for name in schema.required.iter().flatten() {
        if !content.contains_key(name) {
            return Err(format!("`{name}` is missing"));
        }
    }
    for (name, field) in &schema.properties.0 {
        let Some(value) = content.get_mut(name) else { continue };
        if let Field::Number(NumberSchema { kind: NumberKind::Integer, .. }) = field {
            write_as_integer(value);
        }
        check_field(field, value).map_err(|why| format!("`{name}` {why}"))?;
    }
    Ok(content)
}

/// Writes `2.0` as `2`: JSON Schema accepts it as an integer, but a Rust integer does not.
fn write_as_integer(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = value.as_f64().filter(|_| !value.is_i64() && !value.is_u64());
    if let Some(float) = float.filter(|float| float.fract() == 0.0 && float.abs() <= EXACT) {
        *value = Value::from(float as i64);
    }
}

/// Validates one value. The error is a predicate whose subject is the field name.
pub fn check_field(field: &Field, value: &Value) -> Result<(), String> {
    match field {
        Field::String(schema) => check_string(schema, text(value)?),
        Field::Number(schema) => check_number(schema, value),
        Field::Boolean(_) => match value {
            Value::Bool(_) => Ok(()),
            _ => Err("must be true or false".to_owned()),
        },
        Field::UntitledSingleSelect(schema) => one_of(value, schema.values.iter()),
        Field::LegacyTitled(schema) => one_of(value, schema.values.iter()),
        Field::TitledSingleSelect(schema) => {
            one_of(value, schema.options.iter().map(|option| &option.value))
        }
        Field::UntitledMultiSelect(schema) => {
            some_of(value, &schema.items.values, schema.min_items, schema.max_items)
        }
        Field::TitledMultiSelect(schema) => {
            let values: Vec<String> =
                schema.items.options.iter().map(|option| option.value.clone()).collect();
            some_of(value, &values, schema.min_items, schema.max_items)
        }
        // A field of an unknown shape, which the author validates.
        _ => Ok(()),
    }
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "must be a string".to_owned())
}

fn check_string(schema: &StringSchema, text: &str) -> Result<(), String> {
    let length = text.chars().count() as u64;
    if let Some(least) = schema.min_length.filter(|least| length < *least) {
        return Err(format!("must have at least {least} characters"));
    }
    if let Some(most) = schema.max_length.filter(|most| length > *most) {
        return Err(format!("must have at most {most} characters"));
    }
    let (fits, what) = match schema.format {
        None => return Ok(()),
        Some(StringFormat::Email) => (is_email(text), "an e-mail address"),
        Some(StringFormat::Uri) => (is_uri(text), "a URI"),
        Some(StringFormat::Date) => (is_date(text), "a date, as in 2026-07-28"),
        Some(StringFormat::DateTime) => {
            (is_date_time(text), "a date and time, as in 2026-07-28T12:00:00Z")
        }
        Some(_) => return Ok(()),
    };
    if fits { Ok(()) } else { Err(format!("must be {what}")) }
}

fn check_number(schema: &NumberSchema, value: &Value) -> Result<(), String> {
    let Value::Number(number) = value else { return Err("must be a number".to_owned()) };
    let is_integer = number.is_i64() || number.is_u64();
    if schema.kind == NumberKind::Integer && !is_integer {
        return Err("must be a whole number".to_owned());
    }
    if let Some(least) = schema.minimum.as_ref().filter(|least| is_less(number, least)) {
        return Err(format!("must be at least {least}"));
    }
    if let Some(most) = schema.maximum.as_ref().filter(|most| is_less(most, number)) {
        return Err(format!("must be at most {most}"));
    }
    Ok(())
}

/// Compares integers exactly, because an `f64` has only 53 bits.
pub(super) fn is_less(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a < b,
        _ => a.as_f64() < b.as_f64(),
    }
}

fn one_of<'a>(value: &Value, values: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let chosen = text(value)?;
    let mut known = Vec::new();
    for value in values {
        if value == chosen {
            return Ok(());
        }
        known.push(value.as_str());
    }
    Err(format!("must be one of {}", known.join(", ")))
}

fn some_of(
    value: &Value,
    values: &[String],
    least: Option<u64>,
    most: Option<u64>,
) -> Result<(), String> {
    let Value::Array(chosen) = value else { return Err("must be a list".to_owned()) };
    chosen.iter().try_for_each(|value| one_of(value, values.iter()))?;
    let count = chosen.len() as u64;
    if let Some(least) = least.filter(|least| count < *least) {
        return Err(format!("must have at least {least} choices"));
    }
    if let Some(most) = most.filter(|most| count > *most) {
        return Err(format!("must have at most {most} choices"));
    }
    Ok(())
}

/// Requires one `@` with text before and after it. Whether the address exists is not checked.
fn is_email(text: &str) -> bool {
    let parts = text.split_once('@');
    parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
        && !text.contains(|char: char| char.is_whitespace() || char.is_control())
}

/// Requires a scheme and a non-empty rest.
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && !rest.is_empty()
        && !text.contains(|char: char| char.is_whitespace() || char.is_control())
}

/// Requires the format `2026-07-28` and an existing day.
fn is_date(text: &str) -> bool {
    let [year, month, day] = text.split('-').collect::<Vec<_>>()[..] else { return false };
    let (Some(year), Some(month), Some(day)) = (digits(year, 4), digits(month, 2), digits(day, 2))
    else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Requires RFC 3339: a date, a time with optional fraction, and an offset.
fn is_date_time(text: &str) -> bool {
    let Some((date, rest)) = text.split_once(['T', 't', ' ']) else { return false };
    let Some(at) = rest.find(['Z', 'z', '+', '-']) else { return false };
    let (time, offset) = rest.split_at(at);
    let (time, fraction) = time.split_once('.').map_or((time, "0"), |(time, rest)| (time, rest));
    let clock = |text: &str, most: [u32; 2]| match text.split(':').collect::<Vec<_>>()[..] {
        [hours, minutes] => {
            digits(hours, 2).is_some_and(|hours| hours <= most[0])
                && digits(minutes, 2).is_some_and(|minutes| minutes <= most[1])
        }
        _ => false,
    };
    let Some((minutes, seconds)) = time.rsplit_once(':') else { return false };
    is_date(date)
        && clock(minutes, [23, 59])
        // 60 is a leap second.
        && digits(seconds, 2).is_some_and(|seconds| seconds <= 60)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
        && (offset.eq_ignore_ascii_case("z") || clock(&offset[1..], [23, 59]))
}

fn digits(text: &str, count: usize) -> Option<u32> {
    let all = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().ok() } else { None }
}
