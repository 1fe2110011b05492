//! Random orders of request, vote, expiry, cancellation, kill and reload against models. The tests of the crates have
//! them; this campaign runs them again and counts them.

use anyhow::{Context, Result};
use xtask::process;

use super::bench::Bench;
use crate::row::Row;

/// Modules with the models, and with the stores that violate a rule on purpose.
const MODULES: [&str; 3] = ["approvals::model::", "broken_people::", "decision_histories::"];

pub(super) fn run(bench: &Bench) -> Result<Vec<Row>> {
    // A short run is a step of the command that runs all tests.
    if bench.is_short {
        return Ok(Vec::new());
    }
    let mut tests = process::cargo(&["test", "--workspace", "--test", "it", "--no-fail-fast"]);
    let output = tests.arg("--").args(MODULES).output().context("could not start cargo")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let passed = passed(&said);
    let of_module = |module: &str| passed.iter().filter(|name| name.starts_with(module)).count();
    let counts = MODULES.map(of_module);
    let shown = MODULES.iter().zip(counts);
    let shown = shown.map(|(module, count)| format!("{count} in {}", module.trim_end_matches(':')));
    let shown = shown.collect::<Vec<_>>().join(", ");
    let figure = format!("{} tests passed ({shown}); {}", passed.len(), output.status);
    let is_met = output.status.success() && !counts.contains(&0);
    let case = "property tests of decisions, and stores that violate a rule";
    Ok(vec![Row::new(case, figure, "≥ 1 of each, all pass", is_met)])
}

/// The names of the tests that passed.
fn passed(output: &str) -> Vec<&str> {
    let lines = output.lines().filter_map(|line| line.strip_prefix("test "));
    lines.filter_map(|line| line.strip_suffix(" ... ok")).collect()
}

#[cfg(test)]
mod tests {
    use super::passed;

    #[test]
    fn tests_that_failed_are_not_counted() {
        let output = "running 3 tests\ntest a::b ... ok\ntest a::c ... FAILED\ntest result: ok. 1";
        assert_eq!(passed(output), ["a::b"]);
    }
}
