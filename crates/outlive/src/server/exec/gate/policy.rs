//! The rule of a gated tool, compiled when the tool is registered: which calls it covers, and the
//! request that people decide about.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use outlive_protocol::{ProtocolError, text};
use outlive_tasks::store::Audience;
use outlive_wire::{InputRequest, RequestedSchema};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::server::{
    approve::{Approve, Condition},
    exec::gate::binding::check_unique,
    run::{
        bound_args::{canonical, hash},
        input::form_request,
    },
};

/// Number of arguments that a request to the caller shows.
const MAX_SHOWN: usize = 20;

/// Characters of an argument that a request to the caller shows.
const MAX_SHOWN_CHARS: usize = 200;

/// The gate of a tool.
pub(crate) struct Gate {
    /// Name of the tool.
    tool: String,
    pub(crate) approve: Arc<Approve>,
    /// Hash of the tool's definition and of the rule.
    pub(crate) definition: String,
    /// Defaults of the arguments in conditions.
    defaults: Map<String, Value>,
}

/// Part of an input schema that conditions need.
#[derive(Default, Deserialize)]
struct InputSchema {
    #[serde(default)]
    properties: Map<String, Value>,
}

impl Gate {
    /// Compiles the rule of a tool. `definition` is everything that determines what a call
    /// executes, and starts with the name of the tool.
    ///
    /// # Errors
    ///
    /// Returns the reason why the rule is invalid.
    pub(crate) fn new(
        approve: Arc<Approve>,
        definition: &[&str],
        input_schema: &str,
    ) -> Result<Self, String> {
        approve.check()?;
        let schema: InputSchema = serde_json::from_str(input_schema).unwrap_or_default();
        let mut defaults = Map::new();
        for condition in &approve.conditions {
            let Condition::Argument { name, .. } = condition else { continue };
            let property = schema.properties.get(name).ok_or_else(|| {
                format!("`approve` has a condition on the argument `{name}`, which does not exist")
            })?;
            if let Some(default) = property.get("default") {
                defaults.insert(name.clone(), default.clone());
            }
        }
        let described = approve.describe();
        let parts: Vec<&str> = definition.iter().copied().chain([described.as_str()]).collect();
        let tool = definition.first().copied().unwrap_or_default().to_owned();
        Ok(Self { tool, definition: hash(&parts), approve, defaults })
    }

    /// Returns whether a call with this name and these arguments needs approval.
    ///
    /// # Errors
    ///
    /// Returns an error if an object in the arguments has two members with one name.
    pub(crate) fn covers(&self, name: &str, arguments: &str) -> Result<bool, ProtocolError> {
        let invalid = |reason: String| {
            ProtocolError::invalid_params(format!("`params.arguments`: {reason}; send it once"))
        };
        check_unique(arguments).map_err(invalid)?;
        // A call through another tool, such as `call_tool` of a gateway, has the arguments of that
        // tool. Conditions cannot read them, so no call may pass.
        if name != self.tool {
            return Ok(true);
        }
        let given: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
        Ok(self.approve.conditions.iter().all(|condition| match condition {
            Condition::Argument { name, values } => {
                let value = given.get(name).or_else(|| self.defaults.get(name));
                let value = canonical(value.unwrap_or(&Value::Null));
                values.iter().any(|one| canonical(one) == value)
            }
            // A condition that panics must not let a call pass.
            Condition::Typed(holds) => {
                catch_unwind(AssertUnwindSafe(|| holds(arguments))).unwrap_or(true)
            }
        }))
    }

    /// Returns the reason why people can never approve a call of this person.
    pub(crate) fn objection(&self, tool: &str, person: Option<&str>) -> Option<String> {
        let Audience::Names(names) = &self.approve.audience else { return None };
        let others: BTreeSet<_> =
            names.iter().map(String::as_str).filter(|name| Some(*name) != person).collect();
        let (left, count) = (others.len(), self.approve.count);
        (left < count as usize).then(|| {
            format!(
                "`{tool}` needs the approval of {count} people other than its caller, and {left} \
                 can decide; ask the operator of this server to name more people"
            )
        })
    }

    /// Returns the request that people decide about. `reason` says why they decide again.
    pub(crate) fn request(&self, arguments: &str, reason: Option<&str>) -> InputRequest {
        let mut message =
            self.approve.message.clone().unwrap_or_else(|| format!("Approve `{}`?", self.tool));
        if let Some(reason) = reason {
            let _ = write!(message, "\n\n{reason}");
        }
        // Pages for people show the arguments themselves; a client shows only the message.
        if self.approve.audience == Audience::Caller {
            message.push_str(&shown(arguments));
        }
        form_request(&message, None, &RequestedSchema::default())
    }
}

/// Returns the arguments of a call as lines.
fn shown(arguments: &str) -> String {
    let given: Map<String, Value> = serde_json::from_str(arguments).unwrap_or_default();
    let mut lines = String::new();
    for (name, value) in given.iter().take(MAX_SHOWN) {
        let value = value.to_string();
        let start: String = value.chars().take(MAX_SHOWN_CHARS).collect();
        let rest = if start.len() < value.len() { "…" } else { "" };
        let separator = if lines.is_empty() { "\n\n" } else { "\n" };
        let _ = write!(lines, "{separator}{}: {}{rest}", text::line(name), text::line(&start));
    }
    if given.len() > MAX_SHOWN {
        let _ = write!(lines, "\nand {} more arguments", given.len() - MAX_SHOWN);
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outlive_wire::{ElicitRequestParams, InputRequest};
    use serde::Deserialize;
    use serde_json::json;

    use super::Gate;
    use crate::server::approve::Approve;

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "env":{"type":"string","default":"prod"},"size":{"type":"number"},"dry":{"type":"boolean"}}}"#;

    fn gate(approve: Approve) -> Gate {
        Gate::new(Arc::new(approve), &["deploy"], SCHEMA).unwrap()
    }

    #[track_caller]
    fn check(approve: Approve, calls: &[(&str, bool)]) {
        let gate = gate(approve);
        for (arguments, covered) in calls {
            assert_eq!(gate.covers("deploy", arguments).unwrap(), *covered, "{arguments}");
        }
    }

    #[test]
    fn rule_without_condition_covers_every_call() {
        check(Approve::caller(), &[("{}", true), (r#"{"env":"test"}"#, true)]);
    }

    #[test]
    fn condition_compares_values_after_defaults() {
        check(
            Approve::caller().when_argument("env", ["prod", "stage"]),
            &[
                ("{}", true),
                (r#"{"env":"prod"}"#, true),
                (r#"{"env":"\u0070rod"}"#, true),
                (r#"{"env":"test"}"#, false),
            ],
        );
        check(
            Approve::caller().when_argument("size", [json!(1)]),
            &[
                (r#"{"size":1}"#, true),
                (r#"{"size":1.0}"#, true),
                (r#"{"size":"1"}"#, false),
                ("{}", false),
            ],
        );
    }

    #[test]
    fn several_conditions_must_all_hold() {
        check(
            Approve::caller().when_argument("env", ["prod"]).when_argument("dry", [false]),
            &[
                (r#"{"dry":false}"#, true),
                (r#"{"env":"test","dry":false}"#, false),
                (r#"{"env":"prod","dry":true}"#, false),
            ],
        );
    }

    #[derive(Deserialize)]
    struct Deploy {
        #[serde(default)]
        size: u32,
    }

    #[test]
    fn typed_condition_that_cannot_decide_covers_the_call() {
        check(
            Approve::caller().when(|deploy: &Deploy| {
                assert_ne!(deploy.size, 13, "on purpose");
                deploy.size > 100
            }),
            &[
                ("{}", false),
                (r#"{"size":101}"#, true),
                (r#"{"size":"many"}"#, true),
                (r#"{"size":13}"#, true),
            ],
        );
    }

    #[test]
    fn call_through_another_tool_with_any_arguments_is_covered() {
        let gate = gate(Approve::caller().when_argument("env", ["prod"]));
        let arguments = r#"{"name":"deploy","arguments":{"env":"prod"}}"#;
        assert!(gate.covers("call_tool", arguments).unwrap());
        assert!(!gate.covers("deploy", r#"{"env":"test"}"#).unwrap());
    }

    #[test]
    fn duplicate_member_is_rejected() {
        const DUPLICATE: &str = r#"{"env":"test","env":"prod"}"#;
        let error = gate(Approve::caller()).covers("deploy", DUPLICATE).unwrap_err();
        assert!(error.to_string().contains("member `env` occurs twice"), "{error}");
    }

    #[test]
    fn condition_on_unknown_argument_is_rejected() {
        let approve = Arc::new(Approve::caller().when_argument("enviroment", ["prod"]));
        let error = Gate::new(approve, &[], SCHEMA).err().unwrap();
        assert!(error.contains("`enviroment`, which does not exist"), "{error}");
    }

    #[test]
    fn call_is_refused_if_too_few_people_remain_without_its_caller() {
        let gate = gate(Approve::by(["ada", "ben"]).count(2));
        assert!(gate.objection("deploy", Some("ada")).unwrap().contains("2 people"));
        assert_eq!(gate.objection("deploy", Some("cid")), None);
        assert_eq!(gate.objection("deploy", None), None);
        let open = super::Gate::new(
            Arc::new(Approve::by(["ada"]).or_scope("x").count(2)),
            &["deploy"],
            SCHEMA,
        );
        assert_eq!(open.unwrap().objection("deploy", Some("ada")), None, "holders are unknown");
    }

    #[test]
    fn definition_depends_on_tool_and_rule() {
        let of = |parts: &[&str], approve| {
            Gate::new(Arc::new(approve), parts, SCHEMA).unwrap().definition
        };
        let base = of(&["deploy", "1"], Approve::by(["ada"]));
        assert_eq!(base, of(&["deploy", "1"], Approve::by(["ada"])));
        assert_ne!(base, of(&["deploy", "2"], Approve::by(["ada"])));
        assert_ne!(base, of(&["deploy", "1"], Approve::by(["ben"])));
        assert_ne!(base, of(&["deploy1", ""], Approve::by(["ada"])));
    }

    #[test]
    fn request_to_caller_shows_arguments_and_request_to_people_does_not() {
        let message = |approve| match gate(approve).request(r#"{"env":"a\u202eb"}"#, None) {
            InputRequest::Elicit(ElicitRequestParams::Form(form)) => form.message,
            other => panic!("{other:?}"),
        };
        assert_eq!(message(Approve::by(["ada"])), "Approve `deploy`?");
        assert_eq!(message(Approve::caller()), "Approve `deploy`?\n\nenv: \"a\\u{202e}b\"");
    }
}
