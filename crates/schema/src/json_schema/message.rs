//! Messages for failures, which a model can act on.

use serde_json::Value;

use super::{
    failure::{Failure, Rule},
    quote::{list, quoted, shortened, values},
};

/// Returns a predicate whose subject is the location of the failure.
pub(super) fn message(failure: &Failure<'_>) -> String {
    let found = quoted(failure.value);
    match &failure.rule {
        Rule::Type(names) => format!("must be {}, not {found}", types(names).join(" or ")),
        Rule::Required(names) => lacks(names),
        Rule::Unexpected { names, known } if known.is_empty() => {
            format!("must not have {}", list(names))
        }
        Rule::Unexpected { names, known } => {
            format!("must not have {}; it may have {}", list(names), list(known))
        }
        Rule::Enum(options) => {
            format!("must be one of {}, not {found}", values(options.iter().copied()))
        }
        Rule::Const(expected) => format!("must be {}, not {found}", quoted(expected)),
        Rule::Bound { relation, limit } => format!("must be {relation} {limit}, not {found}"),
        Rule::Size { side, limit, unit } => sized(side, *limit, unit, failure.value),
        Rule::UniqueItems => format!("must not have the same item twice, but is {found}"),
        Rule::Pattern(pattern) => format!("must match the pattern `{pattern}`, not {found}"),
        Rule::SeveralFit => {
            format!("matches more than one of its alternatives, but must match only one: {found}")
        }
        Rule::NoneFits(branches) => {
            format!("matches none of its {} alternatives: {found}", branches.len())
        }
        Rule::NoMembers => format!("must have no members, but one is {found}"),
        Rule::Nothing => format!("must be absent, but is {found}"),
        Rule::Not => format!("is a value that the schema excludes: {found}"),
        Rule::Other(text) => format!("is not accepted: {}", shortened(text)),
    }
}

/// Returns the message for missing members.
pub(super) fn lacks(names: &[&str]) -> String {
    let noun = if names.len() == 1 { "property" } else { "properties" };
    format!("lacks the required {noun} {}", list(names))
}

/// Returns the types with their articles, in a fixed order.
pub(super) fn types(names: &[&str]) -> Vec<String> {
    const ORDER: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let article = |name: &str| match name {
        "null" => "null".to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    ORDER.into_iter().filter(|name| names.contains(name)).map(article).collect()
}

fn sized(side: &str, limit: u64, unit: &str, value: &Value) -> String {
    let size = match value {
        Value::String(text) => text.chars().count(),
        Value::Array(items) => items.len(),
        Value::Object(members) => members.len(),
        _ => 0,
    };
    let plural = if limit == 1 { "" } else { "s" };
    format!("must have {side} {limit} {unit}{plural}, but has {size}: {}", quoted(value))
}
