//! Nobody outside the eras asks which revision it is.
//!
//! Whoever compares revisions has to name one, so naming one is what the rule looks for: the
//! variants of `Version` and their dates as strings. Where a revision is only passed on, the line
//! says so with `// tidy: version is a value here`.

use super::findings::Findings;
use super::tree::Tree;

pub(super) const ERAS: &str = "crates/protocol/src/era/";
pub(super) const VERSIONS: &str = "crates/wire/src/version.rs";

const EXEMPT: &str = "tidy: version is a value here";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in
        tree.product_files().filter(|file| !file.path.starts_with(ERAS) && file.path != VERSIONS)
    {
        for line in file.lines_without_tests().filter(|line| !line.comment.contains(EXEMPT)) {
            let named = line.code.contains("Version::V") || words(&line.code).any(is_variant);
            if named || line.literals.iter().any(|literal| is_date(literal)) {
                let message = format!(
                    "only {ERAS} knows what a revision means; ask the era, or write `// {EXEMPT}`"
                );
                findings.add(&file.path, line.number, message);
            }
        }
    }
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|char: char| !char.is_alphanumeric() && char != '_')
}

/// `V2025_11_25`.
fn is_variant(word: &str) -> bool {
    word.strip_prefix('V').is_some_and(|date| is_date(&date.replace('_', "-")))
}

/// `2025-11-25`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.as_slice(), [year, month, day] if year.len() == 4 && month.len() == 2 && day.len() == 2)
        && parts.iter().all(digits)
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn a_revision_is_named_only_in_the_eras() {
        let text = "//! A.\nif version >= Version::V2026_07_28 {}\n";
        assert_eq!(found(check, &[("crates/outlive/src/a.rs", text)]).len(), 1);
        assert!(found(check, &[("crates/protocol/src/era/modern/a.rs", text)]).is_empty());
        assert!(found(check, &[("crates/wire/src/version.rs", text)]).is_empty());
        assert!(found(check, &[("examples/src/a.rs", text)]).is_empty());
    }

    #[test]
    fn an_import_or_a_date_does_not_get_around_it() {
        let text =
            "use Version::{\n    V2025_11_25,\n};\nif version.as_str() == \"2025-11-25\" {}\n";
        assert_eq!(found(check, &[("crates/outlive/src/a.rs", text)]).len(), 2);
    }

    #[test]
    fn prose_tests_and_values_are_free() {
        let text = "//! Since 2026-07-28.\n// Version::V2025_06_18 had batches.\n\
                    offer(Version::V2026_07_28); // tidy: version is a value here\n\
                    #[cfg(test)]\nmod tests {\n    check(Version::V2025_11_25);\n}\n";
        assert!(found(check, &[("crates/outlive/src/a.rs", text)]).is_empty());
    }
}
