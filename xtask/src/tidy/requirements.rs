//! Every requirement of the specification has a test, or a reason why it needs none.
//!
//! `docs/requirements.md` contains tables. A row starts with the requirement's ID. Its last cell
//! has one or more tests, written `` `crate::path::test_name` ``, or a reason that starts with `—`.
//! `xtask/requirements-ids.txt` lists the required IDs.

use std::collections::{HashMap, HashSet};

use super::findings::Findings;
use super::source::Line;
use super::tree::{File, Tree};

pub(super) const TABLE: &str = "docs/requirements.md";
pub(super) const IDS: &str = "xtask/requirements-ids.txt";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let (Some(table), Some(ids)) = (tree.get(TABLE), tree.get(IDS)) else { return };
    let tests: HashSet<&str> = tree.rust_files().flat_map(tests).collect();
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for row in rows(&table.text) {
        let mut object = |message: String| findings.add(TABLE, row.line, message);
        match row.id {
            None => object("the row does not start with the ID of a requirement".to_owned()),
            Some(id) => {
                if let Some(first) = seen.insert(id, row.line) {
                    object(format!("{id} is already in line {first}"));
                }
            }
        }
        let named = test_names(row.shown_by);
        if named.is_empty() && !row.shown_by.starts_with('—') {
            object("the last cell has neither a test, `` `crate::path::test_name` ``, nor a reason, `— …`".to_owned());
        }
        for name in named.into_iter().filter(|name| !tests.contains(name)) {
            object(format!("no test `{name}` exists"));
        }
    }
    for id in
        ids.text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if !seen.contains_key(id) {
            findings.add(TABLE, 1, format!("{id} is missing"));
        }
    }
}

struct Row<'a> {
    line: usize,
    id: Option<&'a str>,
    shown_by: &'a str,
}

/// Returns the rows of all tables, without headings and separators.
fn rows(page: &str) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for (index, line) in page.lines().enumerate() {
        let Some(cells) = line.trim().strip_prefix('|') else { continue };
        let cells = cells.strip_suffix('|').unwrap_or(cells);
        if cells.chars().all(|char| "-:| ".contains(char)) {
            // The previous row was the heading of this table.
            rows.pop();
            continue;
        }
        let mut cells = cells.split('|').map(str::trim);
        let first = cells.next().unwrap_or_default().trim_matches(['*', '`']);
        let shown_by = cells.next_back().unwrap_or_default();
        rows.push(Row { line: index + 1, id: is_id(first).then_some(first), shown_by });
    }
    rows
}

/// Whether a text is an ID such as `HTTP26-07` or `VER-12b`.
fn is_id(text: &str) -> bool {
    let Some((area, number)) = text.split_once('-') else { return false };
    // A test scenario, as in `S-T01`.
    let number = number.strip_prefix('T').unwrap_or(number);
    let number = number.strip_suffix(|char: char| char.is_ascii_lowercase()).unwrap_or(number);
    area.starts_with(|char: char| char.is_ascii_uppercase())
        && area.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit())
        && !number.is_empty()
        && number.chars().all(|char| char.is_ascii_digit())
}

/// Returns the last segments of the paths between backticks.
fn test_names(cell: &str) -> Vec<&str> {
    let spans = cell.split('`').skip(1).step_by(2);
    spans.filter_map(|span| span.rsplit_once("::").map(|(_, name)| name)).collect()
}

/// Returns the names of the functions below an attribute that contains `test`.
fn tests(file: &File) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    file.lines().iter().filter_map(move |line: &Line| {
        let code = line.code.trim();
        if code.starts_with("#[") {
            is_test |= code.contains("test");
            return None;
        }
        let (_, behind) = code.split_once("fn ")?;
        let name = behind.split(['(', '<']).next()?;
        std::mem::take(&mut is_test).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{IDS, TABLE, check};

    const TESTS: (&str, &str) = (
        "crates/wire/src/a.rs",
        "fn helper() {}\n#[test]\nfn ids_are_echoed() {}\n#[tokio::test]\n/// Why.\nasync fn pings_are_answered() {}\n",
    );

    fn check_table(rows: &str, ids: &str) -> Vec<String> {
        let page = format!("# Requirements\n\n| id | rule | shown by |\n|---|---|---|\n{rows}");
        found(check, &[(TABLE, &page), (IDS, ids), TESTS])
    }

    #[test]
    fn requirement_with_test_or_reason_passes() {
        let rows = "| RPC-01 | echo | `wire::a::ids_are_echoed`, `wire::a::pings_are_answered` |\n\
                    | **RPC-02** | else | — the type cannot say it |\n";
        assert!(check_table(rows, "# Ids.\nRPC-01\nRPC-02\n").is_empty());
    }

    #[test]
    fn requirement_without_test_and_reason_is_finding() {
        assert_eq!(check_table("| RPC-01 | echo | later |\n", "").len(), 1);
        assert_eq!(check_table("| RPC-01 | echo | |\n", "").len(), 1);
        assert_eq!(check_table("| echo | — no |\n", "").len(), 1);
    }

    #[test]
    fn unknown_test_name_is_finding() {
        assert!(
            check_table("| RPC-01 | echo | `wire::a::gone` |\n", "")[0].contains("no test `gone`")
        );
        assert!(
            check_table("| RPC-01 | echo | `wire::a::helper` |\n", "")[0]
                .contains("no test `helper`")
        );
    }

    #[test]
    fn missing_or_duplicate_requirement_is_finding() {
        assert_eq!(check_table("", "RPC-01\n"), [format!("{TABLE}:1: RPC-01 is missing")]);
        let twice = "| RPC-01 | echo | — no |\n".repeat(2);
        assert_eq!(
            check_table(&twice, "RPC-01\n"),
            [format!("{TABLE}:6: RPC-01 is already in line 5")]
        );
    }
}
