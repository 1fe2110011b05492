//! Only the codecs compare protocol versions; all other code reads `VersionRules`.
//!
//! A comparison has to name a version, so the rule searches for names: the constants of `Version`,
//! their dates as strings, and calls of `VersionRules::since`. A line that only passes a version
//! has the comment `// tidy: version is a value here`.

use super::findings::Findings;
use super::tree::Tree;

pub(super) const ERAS: &str = "crates/protocol/src/era/";
pub(super) const RULES: &str = "crates/protocol/src/version/";
pub(super) const VERSIONS: &str = "crates/wire/src/version.rs";

/// The files that may name a version: its date, its rules, and the codec of each era.
const ALLOWED: &[&str] =
    &[VERSIONS, RULES, "crates/protocol/src/era/legacy/", "crates/protocol/src/era/modern/"];

const EXEMPT: &str = "tidy: version is a value here";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let is_allowed = |path: &str| ALLOWED.iter().any(|allowed| path.starts_with(allowed));
    for file in tree.product_files().filter(|file| !is_allowed(&file.path)) {
        for line in file.lines_without_tests().filter(|line| !line.comment.contains(EXEMPT)) {
            let named = line.code.contains("Version::V")
                || line.code.contains(".since(")
                || words(&line.code).any(is_constant);
            if named || line.literals.iter().any(|literal| is_date(literal)) {
                let message = format!(
                    "only the codecs compare versions; read a field of `VersionRules`, or write `// {EXEMPT}`"
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
fn is_constant(word: &str) -> bool {
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
    fn version_outside_codecs_and_rules_is_finding() {
        let text = "//! A.\nif version >= Version::V2026_07_28 {}\n";
        assert_eq!(found(check, &[("crates/outlive/src/a.rs", text)]).len(), 1);
        assert_eq!(found(check, &[("crates/protocol/src/era/a.rs", text)]).len(), 1);
        assert!(found(check, &[("crates/protocol/src/era/modern/a.rs", text)]).is_empty());
        assert!(found(check, &[("crates/protocol/src/version/a.rs", text)]).is_empty());
        assert!(found(check, &[("crates/wire/src/version.rs", text)]).is_empty());
        assert!(found(check, &[("examples/src/a.rs", text)]).is_empty());
    }

    #[test]
    fn version_as_import_date_or_comparison_is_finding() {
        let text = "use Version::{\n    V2025_11_25,\n};\nif version.as_str() == \"2025-11-25\" {}\n\
                    if rules.since(version) {}\n";
        assert_eq!(found(check, &[("crates/outlive/src/a.rs", text)]).len(), 3);
    }

    #[test]
    fn version_in_prose_tests_and_values_is_allowed() {
        let text = "//! Since 2026-07-28.\n// Version::V2025_06_18 had batches.\n\
                    offer(Version::V2026_07_28); // tidy: version is a value here\n\
                    #[cfg(test)]\nmod tests {\n    check(Version::V2025_11_25);\n}\n";
        assert!(found(check, &[("crates/outlive/src/a.rs", text)]).is_empty());
    }
}
