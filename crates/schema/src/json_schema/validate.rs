//! Validates a value against a document that [`supported`](super::supported) covers, and finds the
//! reasons of a failure.
//! Spec: <https://json-schema.org/draft/2020-12/json-schema-validation>

use std::cell::Cell;

use serde_json::{Map, Value};

use super::{
    equality::{are_distinct, equal},
    failure::{Failure, Rule},
    number::Number,
    report::{Flow, GO_ON, Here, Place, Report},
    supported::{INTEGER_NAMES, resolve},
};

/// Maximum number of schema applications per byte of the text. Nested alternatives can make a short
/// text expensive.
const STEPS_PER_BYTE: usize = 64;

/// A schema that rejects every value.
static NOTHING: Value = Value::Bool(false);

/// Validates one value against one document.
pub(super) struct Validator<'a> {
    document: &'a Value,
    /// Remaining schema applications.
    steps: Cell<usize>,
}

impl<'a> Validator<'a> {
    /// Creates a validator for a text of `text_bytes` bytes.
    pub(super) fn new(document: &'a Value, text_bytes: usize) -> Self {
        let steps = text_bytes.saturating_add(64).saturating_mul(STEPS_PER_BYTE);
        Self { document, steps: Cell::new(steps) }
    }

    /// Returns whether a value is valid. A value that needs too many steps is invalid.
    pub(super) fn fits(&self, value: &'a Value) -> bool {
        self.is_fitting(self.document, value) && self.steps.get() > 0
    }

    /// Returns why a value is invalid. `None` if it is valid, or if the search needs too many
    /// steps.
    pub(super) fn first_failure(&self, value: &'a Value) -> Option<Failure<'a>> {
        let failures = self.failures(self.document, value, &Place::Root);
        failures.into_iter().next().filter(|_| self.steps.get() > 0)
    }

    fn is_fitting(&self, schema: &'a Value, value: &'a Value) -> bool {
        self.check(schema, value, &Place::Root, &mut Report::Verdict).is_continue()
    }

    fn failures(&self, schema: &'a Value, value: &'a Value, place: &Place<'_>) -> Vec<Failure<'a>> {
        let mut report = Report::Failures(Vec::new());
        // `Break` means that no steps are left; the caller then ignores the failures.
        let _ = self.check(schema, value, place, &mut report);
        match report {
            Report::Failures(failures) => failures,
            Report::Verdict => Vec::new(),
        }
    }

    fn check(
        &self,
        schema: &'a Value,
        value: &'a Value,
        place: &Place<'_>,
        report: &mut Report<'a>,
    ) -> Flow {
        self.steps.set(self.steps.get().saturating_sub(1));
        if self.steps.get() == 0 {
            return Flow::Break(());
        }
        let keywords = match schema {
            Value::Bool(true) => return GO_ON,
            Value::Object(keywords) => keywords,
            _ => return report.fail(place, value, || Rule::Nothing),
        };
        let here = Here { keywords, value, place };
        if let Some(kinds) = here.keyword("type").map(texts)
            && !kinds.iter().any(|kind| is_of_kind(value, kind))
        {
            return report.fail(place, value, || Rule::Type(kinds));
        }
        check_literals(here, report)?;
        match value {
            Value::Number(number) => check_number(here, number, report)?,
            Value::String(text) => {
                check_size(
                    here,
                    || text.chars().count(),
                    ["minLength", "maxLength"],
                    "character",
                    report,
                )?;
            }
            Value::Array(items) => self.check_items(here, items, report)?,
            Value::Object(members) => self.check_members(here, members, report)?,
            Value::Null | Value::Bool(_) => {}
        }
        self.check_in_place(here, report)?;
        self.check_unevaluated(here, report)
    }

    /// Checks the keywords whose schemas apply to the same value.
    fn check_in_place(&self, here: Here<'a, '_>, report: &mut Report<'a>) -> Flow {
        let Here { value, place, .. } = here;
        if let Some(target) = here.keyword("$ref") {
            self.check(self.target(target), value, place, report)?;
        }
        for branch in list(here.keyword("allOf")) {
            self.check(branch, value, place, report)?;
        }
        let none_fits = |branches: &'a [Value]| {
            Rule::NoneFits(branches.iter().map(|it| self.failures(it, value, place)).collect())
        };
        if let any @ [_, ..] = list(here.keyword("anyOf")) {
            let fits = any.iter().any(|branch| self.is_fitting(branch, value));
            here.hold(report, fits, || none_fits(any))?;
        }
        if let one @ [_, ..] = list(here.keyword("oneOf")) {
            let fitting =
                one.iter().filter(|branch| self.is_fitting(branch, value)).take(2).count();
            here.hold(report, fitting == 1, || match fitting {
                0 => none_fits(one),
                _ => Rule::SeveralFit,
            })?;
        }
        let excluded = here.keyword("not").is_some_and(|not| self.is_fitting(not, value));
        here.hold(report, !excluded, || Rule::Not)
    }

    fn check_items(&self, here: Here<'a, '_>, items: &'a [Value], report: &mut Report<'a>) -> Flow {
        check_size(here, || items.len(), ["minItems", "maxItems"], "item", report)?;
        let distinct = here.keyword("uniqueItems").is_some_and(|distinct| *distinct == true);
        here.hold(report, !distinct || are_distinct(items), || Rule::UniqueItems)?;
        let first = list(here.keyword("prefixItems"));
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| here.keyword("items")) {
                self.check(schema, item, &Place::Item(here.place, index), report)?;
            }
        }
        GO_ON
    }

    fn check_members(
        &self,
        here: Here<'a, '_>,
        members: &'a Map<String, Value>,
        report: &mut Report<'a>,
    ) -> Flow {
        let missing = || {
            let required = list(here.keyword("required")).iter().filter_map(Value::as_str);
            required.filter(|name| !members.contains_key(*name))
        };
        here.hold(report, missing().next().is_none(), || Rule::Required(missing().collect()))?;
        check_size(here, || members.len(), ["minProperties", "maxProperties"], "member", report)?;
        for (name, schema) in map(here.keyword("properties")).into_iter().flatten() {
            if let Some(value) = members.get(name) {
                self.check(schema, value, &Place::Member(here.place, name), report)?;
            }
        }
        for (pattern, schema) in map(here.keyword("patternProperties")).into_iter().flatten() {
            for (name, value) in members.iter().filter(|(name, _)| is_match(pattern, name)) {
                self.check(schema, value, &Place::Member(here.place, name), report)?;
            }
        }
        let Some(rest) = here.keyword("additionalProperties") else { return GO_ON };
        let has_names =
            ["properties", "patternProperties"].iter().any(|it| here.keyword(it).is_some());
        match members.values().next() {
            Some(first) if *rest == false && !has_names => {
                report.fail(here.place, first, || Rule::NoMembers)
            }
            _ => {
                self.check_rest(here, rest, members, &|name| is_named(here.keywords, name), report)
            }
        }
    }

    /// Checks the members that no other keyword names.
    fn check_rest(
        &self,
        here: Here<'a, '_>,
        rest: &'a Value,
        members: &'a Map<String, Value>,
        is_named: &dyn Fn(&str) -> bool,
        report: &mut Report<'a>,
    ) -> Flow {
        let others = || members.iter().filter(|(name, _)| !is_named(name));
        if *rest == false {
            return here.hold(report, others().next().is_none(), || Rule::Unexpected {
                names: others().map(|(name, _)| name.as_str()).collect(),
                known: map(here.keyword("properties"))
                    .into_iter()
                    .flat_map(|known| known.keys().map(String::as_str))
                    .collect(),
            });
        }
        for (name, value) in others() {
            self.check(rest, value, &Place::Member(here.place, name), report)?;
        }
        GO_ON
    }

    fn check_unevaluated(&self, here: Here<'a, '_>, report: &mut Report<'a>) -> Flow {
        let (Some(rest), Value::Object(members)) =
            (here.keyword("unevaluatedProperties"), here.value)
        else {
            return GO_ON;
        };
        let mut inner = Vec::new();
        self.collect_fitting(here.keywords, here.value, &mut inner);
        let takes_rest = ["additionalProperties", "unevaluatedProperties"];
        let is_evaluated = |name: &str| {
            is_named(here.keywords, name)
                || here.keyword("additionalProperties").is_some()
                || inner.iter().any(|keywords: &&Map<String, Value>| {
                    is_named(keywords, name)
                        || takes_rest.iter().any(|keyword| keywords.contains_key(*keyword))
                })
        };
        self.check_rest(here, rest, members, &is_evaluated, report)
    }

    /// Collects the subschemas that apply to the same value and accept it.
    fn collect_fitting(
        &self,
        keywords: &'a Map<String, Value>,
        value: &'a Value,
        found: &mut Vec<&'a Map<String, Value>>,
    ) {
        let target = keywords.get("$ref").map(|target| self.target(target));
        let lists = ["allOf", "anyOf", "oneOf"].into_iter().map(|name| list(keywords.get(name)));
        for schema in target.into_iter().chain(lists.flatten()) {
            if let Value::Object(inner) = schema
                && self.is_fitting(schema, value)
            {
                found.push(inner);
                self.collect_fitting(inner, value, found);
            }
        }
    }

    /// Returns the target of a reference, which `supported` has checked.
    fn target(&self, reference: &Value) -> &'a Value {
        let target = reference.as_str().and_then(|target| resolve(self.document, target));
        target.unwrap_or(&NOTHING)
    }
}

fn check_literals<'a>(here: Here<'a, '_>, report: &mut Report<'a>) -> Flow {
    if let Some(expected) = here.keyword("const") {
        here.hold(report, equal(expected, here.value), || Rule::Const(expected))?;
    }
    let Some(Value::Array(options)) = here.keyword("enum") else { return GO_ON };
    let fits = options.iter().any(|option| equal(option, here.value));
    here.hold(report, fits, || Rule::Enum(options.iter().collect()))
}

fn check_number<'a>(
    here: Here<'a, '_>,
    number: &serde_json::Number,
    report: &mut Report<'a>,
) -> Flow {
    let Some(number) = Number::of(number) else { return GO_ON };
    type Holds = fn(std::cmp::Ordering) -> bool;
    let bounds: [(&str, &str, Holds); 4] = [
        ("minimum", "at least", |order| order.is_ge()),
        ("exclusiveMinimum", "more than", |order| order.is_gt()),
        ("maximum", "at most", |order| order.is_le()),
        ("exclusiveMaximum", "less than", |order| order.is_lt()),
    ];
    for (keyword, relation, holds) in bounds {
        let Some(limit) = here.keyword(keyword) else { continue };
        let bound = limit.as_number().and_then(Number::of);
        let fits = bound.is_some_and(|bound| holds(number.compare(bound)));
        here.hold(report, fits, || Rule::Bound { relation, limit: limit.to_string() })?;
    }
    let Some(limit) = here.keyword("multipleOf") else { return GO_ON };
    let step = limit.as_number().and_then(Number::of).and_then(Number::whole);
    let fits = step.is_some_and(|step| number.is_multiple_of(step));
    here.hold(report, fits, || Rule::Bound { relation: "a multiple of", limit: limit.to_string() })
}

fn check_size<'a>(
    here: Here<'a, '_>,
    size: impl Fn() -> usize,
    [least, most]: [&str; 2],
    unit: &'static str,
    report: &mut Report<'a>,
) -> Flow {
    for (keyword, side) in [(least, "at least"), (most, "at most")] {
        if let Some(limit) = here.keyword(keyword).and_then(Value::as_u64) {
            let size = size() as u64;
            let fits = if keyword == least { size >= limit } else { size <= limit };
            here.hold(report, fits, || Rule::Size { side, limit, unit })?;
        }
    }
    GO_ON
}

fn is_of_kind(value: &Value, kind: &str) -> bool {
    match (kind, value) {
        ("null", Value::Null)
        | ("boolean", Value::Bool(_))
        | ("number", Value::Number(_))
        | ("string", Value::String(_))
        | ("array", Value::Array(_))
        | ("object", Value::Object(_)) => true,
        ("integer", Value::Number(number)) => Number::of(number).is_some_and(Number::is_whole),
        _ => false,
    }
}

/// Returns whether `properties` or `patternProperties` names a member.
fn is_named(keywords: &Map<String, Value>, name: &str) -> bool {
    map(keywords.get("properties")).is_some_and(|known| known.contains_key(name))
        || map(keywords.get("patternProperties"))
            .is_some_and(|patterns| patterns.keys().any(|pattern| is_match(pattern, name)))
}

/// Returns whether a name matches one of [`INTEGER_NAMES`].
fn is_match(pattern: &str, name: &str) -> bool {
    let [_, signed] = INTEGER_NAMES;
    let digits = name.strip_prefix('-').filter(|_| pattern == signed).unwrap_or(name);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn map(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

/// Returns one string, or the strings of a list.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect(),
    }
}
