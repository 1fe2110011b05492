//! Random programs of steps, timers, input requests, emits and parallel branches.

use serde_json::{Value, json};

use crate::crash::random::Random;

/// Depth of nested branches.
const MAX_DEPTH: usize = 2;

/// A program, and what an undisturbed run of it yields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Program {
    pub(super) operations: Value,
    pub(super) result: Value,
    /// Paths of the steps, each of which executes once.
    pub(super) steps: Vec<String>,
    /// Texts of the segments, in no particular order.
    pub(super) segments: Vec<String>,
    /// Lower limit of the lines of an undisturbed run, without the first one.
    pub(super) lines: u64,
}

impl Program {
    /// Creates a program. Its paths start with `key`.
    pub(super) fn new(random: &mut Random, key: &str) -> Self {
        // The last line is the result.
        let mut program = Self { lines: 1, ..Self::default() };
        (program.operations, program.result) = program.branch(random, key, 0);
        program.steps.sort();
        program.segments.sort();
        program
    }

    /// Adds a branch, and returns its operations and its result.
    fn branch(&mut self, random: &mut Random, path: &str, depth: usize) -> (Value, Value) {
        let kinds: &[&str] = match depth {
            MAX_DEPTH => &["step", "sleep", "emit"],
            _ => &["step", "step", "sleep", "ask", "emit", "all"],
        };
        let (mut operations, mut results) = (Vec::new(), Vec::new());
        for number in 0..=random.below(3) {
            let kind = kinds[random.below(kinds.len())];
            let (key, value) = (format!("{kind}{number}"), random.below(100));
            let path = format!("{path}/{key}");
            let mut branches = Vec::new();
            let (result, lines) = match kind {
                // Its start, its end and the response.
                "step" => {
                    self.steps.push(path);
                    (json!(value), 3)
                }
                "emit" => {
                    self.segments.push(path);
                    (Value::Null, 1)
                }
                "ask" => (json!(true), 2),
                "sleep" => (Value::Null, 2),
                _ => {
                    let count = 1 + random.below(3);
                    let mut branch =
                        |n: usize| self.branch(random, &format!("{path}/{n}"), depth + 1);
                    let (inner, values): (Vec<_>, Vec<_>) = (0..count).map(&mut branch).unzip();
                    branches = inner;
                    (json!(values), 0)
                }
            };
            self.lines += lines;
            operations
                .push(json!({"kind": kind, "key": key, "value": value, "branches": branches}));
            results.push(result);
        }
        (json!(operations), json!(results))
    }
}

#[cfg(test)]
mod tests {
    use super::{Program, Random};

    #[test]
    fn same_seed_yields_same_program() {
        let program = |seed| Program::new(&mut Random::new(seed), "p");
        assert_eq!(program(7), program(7));
        assert_ne!(program(7), program(8));
    }

    #[test]
    fn programs_have_operations_of_every_kind() {
        let mut random = Random::new(1);
        let texts: Vec<String> =
            (0..100).map(|_| Program::new(&mut random, "p").operations.to_string()).collect();
        for kind in ["step", "sleep", "ask", "emit", "all"] {
            let kind = format!(r#""kind":"{kind}""#);
            assert!(texts.iter().any(|text| text.contains(&kind)), "{kind}");
        }
    }
}
