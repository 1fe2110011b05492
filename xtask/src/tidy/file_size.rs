//! A file of more than 500 lines without its tests needs a written reason.
//!
//! The reasons stand in `xtask/tidy-allow.toml`, as `[[long]]` with `path` and `reason`.

use super::Findings;
use super::tree::{File, Tree};

pub(super) const ALLOWED: &str = "xtask/tidy-allow.toml";

const LIMIT: usize = 500;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let allowed = tree.get(ALLOWED).map(|file| entries(&file.text, findings)).unwrap_or_default();
    for file in tree.rust_files().filter(|file| !file.is_test()) {
        let length = length(file);
        if length > LIMIT && !allowed.iter().any(|entry| entry.path == file.path) {
            let message = format!(
                "{length} lines without tests; split it by the reader's question, or give a reason in {ALLOWED}"
            );
            findings.add(&file.path, LIMIT + 1, message);
        }
    }
    for entry in &allowed {
        match tree.get(&entry.path) {
            None => findings.add(
                ALLOWED,
                entry.line,
                format!("{} does not exist; remove the entry", entry.path),
            ),
            Some(file) if length(file) <= LIMIT => {
                let message = format!("{} is no longer too long; remove the entry", entry.path);
                findings.add(ALLOWED, entry.line, message);
            }
            Some(_) if entry.reason.is_empty() => {
                findings.add(ALLOWED, entry.line, "the entry has no reason")
            }
            Some(_) => {}
        }
    }
}

fn length(file: &File) -> usize {
    file.lines_without_tests().count()
}

#[derive(Default)]
struct Entry {
    line: usize,
    path: String,
    reason: String,
}

/// Reads the list. It is written by hand and has two keys, so it needs no more of TOML than that.
fn entries(text: &str, findings: &mut Findings) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let value = |key: &str| {
            line.strip_prefix(key)?
                .trim_start()
                .strip_prefix('=')?
                .trim()
                .strip_prefix('"')?
                .strip_suffix('"')
        };
        match entries.last_mut() {
            _ if line.is_empty() || line.starts_with('#') => {}
            _ if line == "[[long]]" => entries.push(Entry { line: index + 1, ..Entry::default() }),
            Some(entry) if value("path").is_some() => {
                entry.path = value("path").unwrap_or_default().to_owned()
            }
            Some(entry) if value("reason").is_some() => {
                entry.reason = value("reason").unwrap_or_default().to_owned()
            }
            _ => findings.add(
                ALLOWED,
                index + 1,
                "only `[[long]]` with `path = \"…\"` and `reason = \"…\"` can stand here",
            ),
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::found;
    use super::{ALLOWED, check};

    const ENTRY: &str = "# Why.\n[[long]]\npath = \"a.rs\"\nreason = \"a catalogue\"\n";

    #[test]
    fn a_long_file_needs_a_reason() {
        let long = "a();\n".repeat(501);
        assert_eq!(found(check, &[("a.rs", &long), (ALLOWED, "")]).len(), 1);
        assert!(found(check, &[("a.rs", &long), (ALLOWED, ENTRY)]).is_empty());
    }

    #[test]
    fn tests_do_not_count() {
        let text = format!("//! A.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "    a();\n".repeat(600));
        assert!(found(check, &[("a.rs", &text)]).is_empty());
        assert!(found(check, &[("crates/wire/src/a/tests.rs", &"a();\n".repeat(600))]).is_empty());
    }

    #[test]
    fn an_entry_that_is_not_needed_is_a_finding() {
        assert!(found(check, &[(ALLOWED, ENTRY)])[0].contains("does not exist"));
        assert!(
            found(check, &[("a.rs", "//! A.\n"), (ALLOWED, ENTRY)])[0]
                .contains("no longer too long")
        );
    }

    #[test]
    fn an_entry_without_a_reason_or_with_other_keys_is_a_finding() {
        let long = "a();\n".repeat(501);
        let entry = "[[long]]\npath = \"a.rs\"\nlines = 600\n";
        assert_eq!(found(check, &[("a.rs", &long), (ALLOWED, entry)]).len(), 2);
    }
}
