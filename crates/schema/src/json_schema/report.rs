//! The failures that a validation collects, and their locations.

use std::{fmt::Write, ops::ControlFlow};

use serde_json::{Map, Value};

use super::{
    failure::{Failure, Rule},
    subschemas::push_step,
};

/// Whether a validation continues. `Break` ends it: the value is invalid, or no steps are left.
pub(super) type Flow = ControlFlow<()>;

pub(super) const GO_ON: Flow = Flow::Continue(());

/// The purpose of a validation.
pub(super) enum Report<'a> {
    /// Only the verdict: the first failure ends the validation.
    Verdict,
    /// All failures.
    Failures(Vec<Failure<'a>>),
}

/// A value, with the keywords of a schema that applies to it.
#[derive(Clone, Copy)]
pub(super) struct Here<'a, 'p> {
    pub(super) keywords: &'a Map<String, Value>,
    pub(super) value: &'a Value,
    pub(super) place: &'p Place<'p>,
}

impl<'a> Here<'a, '_> {
    pub(super) fn keyword(&self, name: &str) -> Option<&'a Value> {
        self.keywords.get(name)
    }

    /// Reports a failure unless `fits`.
    pub(super) fn hold(
        &self,
        report: &mut Report<'a>,
        fits: bool,
        rule: impl FnOnce() -> Rule<'a>,
    ) -> Flow {
        if fits { GO_ON } else { report.fail(self.place, self.value, rule) }
    }
}

impl<'a> Report<'a> {
    /// Reports that a value violates a rule.
    pub(super) fn fail(
        &mut self,
        place: &Place<'_>,
        value: &'a Value,
        rule: impl FnOnce() -> Rule<'a>,
    ) -> Flow {
        let Self::Failures(failures) = self else { return Flow::Break(()) };
        let mut path = String::new();
        place.write(&mut path);
        failures.push(Failure { path, value, rule: rule() });
        GO_ON
    }
}

/// The path from the root value to a part of it.
pub(super) enum Place<'p> {
    Root,
    Member(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn write(&self, pointer: &mut String) {
        match self {
            Self::Root => {}
            Self::Member(parent, name) => {
                parent.write(pointer);
                push_step(pointer, name);
            }
            Self::Item(parent, index) => {
                parent.write(pointer);
                write!(pointer, "/{index}").expect("writing to a String cannot fail");
            }
        }
    }
}
