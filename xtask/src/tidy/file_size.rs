//! A file of more than 500 lines without its tests needs a reason.
//!
//! The reasons are `[[long]]` entries with `path` and `reason` in `xtask/tidy-allow.toml`.

use super::allow::{self, ALLOWED};
use super::findings::Findings;
use super::tree::{File, Tree};

const LIMIT: usize = 500;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let allowed = allow::entries(tree, "long");
    for file in tree.rust_files().filter(|file| !file.is_test()) {
        let length = length(file);
        if length > LIMIT && !allowed.iter().any(|entry| entry.path == file.path) {
            let message = format!(
                "{length} lines without tests; split the file by topic, or give a reason in {ALLOWED}"
            );
            findings.add(&file.path, LIMIT + 1, message);
        }
    }
    for entry in &allowed {
        if tree.get(&entry.path).is_some_and(|file| length(file) <= LIMIT) {
            let message = format!("{} is no longer too long; remove the entry", entry.path);
            findings.add(ALLOWED, entry.line, message);
        }
    }
}

fn length(file: &File) -> usize {
    file.lines_without_tests().count()
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{ALLOWED, check};

    const ENTRY: &str = "# Why.\n[[long]]\npath = \"a.rs\"\nreason = \"a catalogue\"\n";

    #[test]
    fn long_file_without_reason_is_finding() {
        let long = "a();\n".repeat(501);
        assert_eq!(found(check, &[("a.rs", &long), (ALLOWED, "")]).len(), 1);
        assert!(found(check, &[("a.rs", &long), (ALLOWED, ENTRY)]).is_empty());
    }

    #[test]
    fn tests_do_not_count_toward_file_length() {
        let text = format!("//! A.\n#[cfg(test)]\nmod tests {{\n{}}}\n", "    a();\n".repeat(600));
        assert!(found(check, &[("a.rs", &text)]).is_empty());
        assert!(found(check, &[("crates/wire/src/a/tests.rs", &"a();\n".repeat(600))]).is_empty());
    }

    #[test]
    fn unneeded_long_entry_is_finding() {
        assert!(
            found(check, &[("a.rs", "//! A.\n"), (ALLOWED, ENTRY)])[0]
                .contains("no longer too long")
        );
    }
}
