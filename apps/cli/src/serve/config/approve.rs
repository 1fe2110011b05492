//! `approve`: which calls of a tool wait for a decision, and who decides.

use std::{collections::BTreeSet, time::Duration};

use outlive::server::approve::Approve;
use serde_json::{Value as Json, json};

use super::{
    argument::Argument,
    asked::Asked,
    reader::{Problem, Read, Result, Section, Value, nearest},
    scopes::one_scope,
    units::Span,
};

/// Section of the documentation with the keys of a rule.
const SECTION: &str = "tools.NAME.approve";

const EXAMPLE: &str =
    "write approve = \"caller\", [\"ada\"] or { by = [\"ada\", \"ben\"], count = 2 }";

/// Arguments of the calls that a rule covers.
#[derive(Clone, Copy)]
pub(super) enum RuleArguments<'a> {
    /// Those of one tool.
    Known(&'a [Argument]),
    /// Those of one tool of an upstream, which alone knows them.
    OfUpstream,
    /// Those of several tools.
    Several,
}

/// Rule for the approval of calls. An absent key has the default of the library.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApproveConfig {
    pub(crate) audience: Deciders,
    count: u32,
    when: Vec<(String, Vec<Json>)>,
    decision_timeout: Option<Duration>,
    start_timeout: Option<Duration>,
    denial_ttl: Option<Duration>,
    max_open: Option<u32>,
    message: Option<String>,
    pub(crate) links: bool,
}

/// People who decide about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deciders {
    Caller,
    /// People by name, or with a scope.
    People {
        names: Vec<String>,
        scope: Option<String>,
    },
}

impl ApproveConfig {
    /// Reads the rule of a key, and reports mistakes.
    pub(super) fn read(
        section: &mut Section<'_>,
        key: &'static str,
        arguments: RuleArguments<'_>,
        asked: &mut Asked,
    ) -> Result<Option<Self>> {
        // The documentation test needs the keys of this table even if the file has no such table.
        let mut none = Section::empty();
        let _ = table(&mut none, arguments);
        asked.note(SECTION, none.finish()?);
        let names = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
        let reference = json!({"$ref": format!("#/$defs/{SECTION}")});
        let schema = json!({"anyOf": [{"const": "caller"}, names, reference]});
        let value = section.take_as(key, schema);
        Ok(section.attempt(|_| value.map(|value| rule(value, arguments)).transpose()).flatten())
    }

    /// Returns the people who decide by name, and the scope whose holders decide.
    pub(crate) fn addressees(&self) -> (&[String], Option<&str>) {
        match &self.audience {
            Deciders::Caller => (&[], None),
            Deciders::People { names, scope } => (names, scope.as_deref()),
        }
    }

    /// Returns the rule for a server.
    pub(crate) fn rule(&self) -> Approve {
        let mut approve = match self.addressees() {
            ([], Some(scope)) => Approve::scope(scope),
            (names, Some(scope)) => Approve::by(names).or_scope(scope),
            (_, None) if self.audience == Deciders::Caller => Approve::caller(),
            (names, None) => Approve::by(names),
        };
        approve = approve.count(self.count).links(self.links);
        for (argument, values) in &self.when {
            approve = approve.when_argument(argument, values.iter().cloned());
        }
        if let Some(timeout) = self.decision_timeout {
            approve = approve.decision_timeout(timeout);
        }
        if let Some(timeout) = self.start_timeout {
            approve = approve.start_timeout(timeout);
        }
        if let Some(ttl) = self.denial_ttl {
            approve = approve.denial_ttl(ttl);
        }
        if let Some(calls) = self.max_open {
            approve = approve.max_open(calls as usize);
        }
        match &self.message {
            Some(message) => approve.message(message),
            None => approve,
        }
    }

    /// Checks that people can satisfy the rule.
    fn check(self, line: usize) -> Result<Self> {
        let (names, scope) = self.addressees();
        let distinct = names.iter().collect::<BTreeSet<_>>().len();
        let is_caller = self.audience == Deciders::Caller;
        let problem = if is_caller && self.count > 1 {
            Problem::at(line, "the caller alone decides, so `count` must be absent")
                .remedy("remove `count`, or name people in `by`")
        } else if !is_caller && scope.is_none() && distinct < self.count as usize {
            let count = self.count;
            Problem::at(line, format_args!("`count` is {count}, but `by` names {distinct} people"))
                .remedy("name more people, or lower `count`")
        } else if self.links && self.count > 1 && names.is_empty() {
            let what =
                "`links` with a `count` above 1 needs names: a link for a scope names no person";
            Problem::at(line, what).remedy("name people in `by`, or remove `links`")
        } else if self.links && is_caller {
            Problem::at(line, "`links` are for named people or a scope, but the caller decides")
                .remedy("remove `links`")
        } else {
            return Ok(self);
        };
        Err(problem)
    }
}

fn rule(value: Value<'_>, arguments: RuleArguments<'_>) -> Result<ApproveConfig> {
    let line = value.line;
    let config = if value.is_table() {
        let mut section = value.section()?;
        let config = table(&mut section, arguments);
        section.finish()?;
        config?
    } else {
        default_rule(deciders(value)?)
    };
    config.check(line)
}

/// Returns the rule without further settings.
fn default_rule(audience: Deciders) -> ApproveConfig {
    ApproveConfig {
        audience,
        count: 1,
        when: Vec::new(),
        decision_timeout: None,
        start_timeout: None,
        denial_ttl: None,
        max_open: None,
        message: None,
        links: false,
    }
}

/// Reads the table form of a rule.
fn table(section: &mut Section<'_>, arguments: RuleArguments<'_>) -> Result<ApproveConfig> {
    let time = |span: Option<Span>| span.map(|Span(span)| span);
    let names = json!({"type": "array", "items": {"type": "string"}, "minItems": 1});
    let by = section.take_as("by", json!({"anyOf": [{"const": "caller"}, names]}));
    let has_by = by.is_some();
    let by = section.attempt(|_| by.map(deciders).transpose()).flatten();
    let scope = one_scope(section, "scope")?;
    let count: Option<u32> = section.read("count")?;
    let when = section.attempt(|section| when(section, arguments)).unwrap_or_default();
    let read = ApproveConfig {
        count: count.unwrap_or(1),
        when,
        decision_timeout: time(section.read("decision_timeout")?),
        start_timeout: time(section.read("start_timeout")?),
        denial_ttl: time(section.read("denial_ttl")?),
        max_open: section.read("max_open")?,
        message: section.read("message")?,
        links: section.read("links")?.unwrap_or(false),
        ..default_rule(Deciders::Caller)
    };
    not_caller(section)?;
    let audience = match (by, scope) {
        (Some(Deciders::Caller), Some(_)) => {
            let what = "`by` is \"caller\", so `scope` has no effect";
            return Err(Problem::at(section.line, what).remedy("remove one of them"));
        }
        (Some(Deciders::People { names, .. }), scope) => Deciders::People { names, scope },
        (Some(Deciders::Caller), None) => Deciders::Caller,
        (None, Some(scope)) => Deciders::People { names: Vec::new(), scope: Some(scope) },
        (None, None) if has_by => Deciders::Caller,
        (None, None) => {
            let what = "the rule does not name the people who decide";
            return Err(section.lacks("by", what).or_remedy(EXAMPLE));
        }
    };
    Ok(ApproveConfig { audience, ..read })
}

/// Reads `not_caller`, which states what always holds.
fn not_caller(section: &mut Section<'_>) -> Result<()> {
    let value = section.take_as("not_caller", json!({"const": true}));
    let line = value.as_ref().map_or(section.line, |value| value.line);
    let excludes = match value {
        Some(value) => bool::read(value)?,
        None => true,
    };
    if !excludes {
        section.report(
            Problem::at(line, "`not_caller` is false, but the vote of the caller never counts")
                .remedy("remove `not_caller`; or write approve = \"caller\" if the caller decides"),
        );
    }
    Ok(())
}

/// Reads `"caller"` or an array of names.
fn deciders(value: Value<'_>) -> Result<Deciders> {
    let unfit = value.unfit("\"caller\" or an array of names").remedy(EXAMPLE);
    if value.text() == Some("caller") {
        return Ok(Deciders::Caller);
    }
    if !value.is_array() {
        return Err(unfit);
    }
    let names = Vec::<String>::read(value)?;
    match names.is_empty() || names.iter().any(|name| name.trim().is_empty()) {
        true => Err(unfit),
        false => Ok(Deciders::People { names, scope: None }),
    }
}

/// Reads the conditions on arguments.
fn when(
    section: &mut Section<'_>,
    arguments: RuleArguments<'_>,
) -> Result<Vec<(String, Vec<Json>)>> {
    let values =
        json!({"type": "object", "additionalProperties": {"type": "array", "minItems": 1}});
    let Some(value) = section.take_as("when", values) else { return Ok(Vec::new()) };
    if let RuleArguments::Several = arguments {
        let what = "`when` names arguments of one tool, but this rule covers several";
        return Err(Problem::at(value.line, what).remedy("set `approve` with `when` in the tool"));
    }
    let mut conditions = Vec::new();
    for (name, value) in value.section()?.entries() {
        if let Some(values) = section.attempt(|_| condition(&name, value, arguments)) {
            conditions.push((name, values));
        }
    }
    Ok(conditions)
}

fn condition(name: &str, value: Value<'_>, arguments: RuleArguments<'_>) -> Result<Vec<Json>> {
    let line = value.line;
    let argument = match arguments {
        RuleArguments::Known(arguments) => Some(argument(name, line, arguments)?),
        RuleArguments::OfUpstream | RuleArguments::Several => None,
    };
    if !value.is_array() {
        return Err(value.unfit("an array of values, such as [\"prod\"]"));
    }
    let values = value.items()?.into_iter().map(Value::json).collect::<Result<Vec<_>>>()?;
    if values.is_empty() {
        let what = format!("`when` lists no value of `{name}`, so no call would need approval");
        return Err(Problem::at(line, what).remedy("list values, or remove the condition"));
    }
    for value in &values {
        if let Some(Err(reason)) = argument.map(|argument| argument.check(value)) {
            let what = format!("the argument `{name}` is never {value}: {reason}");
            return Err(Problem::at(line, what).remedy("list values that a caller can send"));
        }
    }
    Ok(values)
}

/// Finds the argument of a condition.
fn argument<'a>(name: &str, line: usize, arguments: &'a [Argument]) -> Result<&'a Argument> {
    arguments.iter().find(|argument| argument.name == name).ok_or_else(|| {
        let known: Vec<&str> = arguments.iter().map(|argument| argument.name.as_str()).collect();
        let what = format!("`when` has a condition on the argument `{name}`, which does not exist");
        Problem::at(line, what).remedy(match (nearest(name, &known), &known[..]) {
            (Some(meant), _) => format!("write `{meant}`"),
            (None, []) => "add the argument to the tool, or remove the condition".to_owned(),
            (None, known) => format!("use one of: {}", known.join(", ")),
        })
    })
}
