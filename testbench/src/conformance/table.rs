//! The table of results.

use super::judge::{Outcome, Verdict};
use super::results::Status;

/// The count columns.
const STATUSES: [Status; 4] = [Status::Passed, Status::Failed, Status::Warned, Status::Skipped];

pub(super) fn print(verdicts: &[Verdict]) {
    let rows = rows(verdicts);
    let width = rows.iter().map(|row| row.scenario.len()).max().unwrap_or(0).max("scenario".len());
    println!("{:<width$}  {:<10}  passed  failed  warnings  skipped", "scenario", "wire");
    let mut totals = [0; 4];
    for row in &rows {
        let [passed, failed, warned, skipped] = row.counts;
        let Row { scenario, wire, note, .. } = row;
        let line = format!(
            "{scenario:<width$}  {wire:<10}  {passed:>6}  {failed:>6}  {warned:>8}  {skipped:>7}  {note}"
        );
        println!("{}", line.trim_end());
        for (total, count) in totals.iter_mut().zip(row.counts) {
            *total += count;
        }
    }
    let [passed, failed, warned, skipped] = totals;
    println!(
        "{:<width$}  {:<10}  {passed:>6}  {failed:>6}  {warned:>8}  {skipped:>7}",
        "total", ""
    );
    let known = rows.iter().filter(|row| row.note == note(&Outcome::Known)).count();
    println!("rows: {}, expected failures (conformance/baseline.yml): {known}", rows.len());
}

#[derive(Debug, PartialEq, Eq)]
struct Row<'a> {
    scenario: &'a str,
    wire: &'a str,
    counts: [usize; 4],
    note: &'static str,
}

/// Returns one row per scenario and version. Equal results of several legs share a row; different
/// ones have separate rows.
fn rows(verdicts: &[Verdict]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for verdict in verdicts {
        let counts = STATUSES.map(|status| verdict.count(status));
        let row = Row {
            scenario: &verdict.scenario,
            wire: verdict.wire,
            counts,
            note: note(&verdict.outcome),
        };
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    rows.sort_by_key(|row| (row.wire, row.scenario));
    rows
}

fn note(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "",
        Outcome::Known => "known",
        Outcome::Failed => "FAILED",
        Outcome::Stale => "STALE",
        Outcome::Untested => "DID NOT RUN",
    }
}

#[cfg(test)]
mod tests {
    use super::super::baseline::Baseline;
    use super::super::judge;
    use super::super::leg::{Leg, Release, Side, Tasks};
    use super::super::results::{Check, Results, Status};
    use super::rows;

    #[test]
    fn equal_results_of_two_legs_share_one_row() {
        let leg = |name: &str| Leg {
            name: name.to_owned(),
            side: Side::Server,
            release: Release::Newest,
            tasks: Tasks::Quick,
            args: Vec::new(),
            scenarios: vec![("ping".to_owned(), "2025-11-25")],
        };
        let played = |status| {
            let check = Check { id: "a".to_owned(), status, message: String::new() };
            Results::from([("ping".to_owned(), vec![check])])
        };
        let baseline = Baseline::parse("server: []\n").unwrap();
        let mut verdicts = judge::leg(&leg("one"), &played(Status::Passed), &baseline);
        verdicts.extend(judge::leg(&leg("two"), &played(Status::Passed), &baseline));
        assert_eq!(rows(&verdicts).len(), 1);
        verdicts.extend(judge::leg(&leg("three"), &played(Status::Failed), &baseline));
        assert_eq!(rows(&verdicts).len(), 2);
    }
}
