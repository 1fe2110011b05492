//! Word rules: patterns in `xtask/words.toml` that comments, strings, pages and test names do without.

use anyhow::{Context, Result, bail};
use regex::{Regex, RegexSet};
use serde::Deserialize;

use super::findings::Findings;
use super::source::Line;
use super::tree::{File, Tree};

pub(super) const WORDS: &str = "xtask/words.toml";

/// Pages that quote the protocol's own words.
const QUOTED: &[&str] = &["docs/requirements.md"];

/// One word rule.
pub(super) struct WordRule {
    pub(super) name: String,
    pattern: Regex,
    unless: Option<Regex>,
    places: Vec<Place>,
    say: String,
}

/// A section of the file.
#[derive(Deserialize)]
struct Section {
    pattern: String,
    unless: Option<String>,
    #[serde(rename = "in")]
    places: Vec<Place>,
    say: String,
}

/// Part of the project that a word rule reads.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Place {
    /// Comments of Rust files, outside of tests.
    Comments,
    /// String literals with a space, outside of tests.
    Strings,
    /// Markdown.
    Pages,
    /// Names of test functions.
    Tests,
}

/// Reads the word rules.
pub(super) fn rules(text: &str) -> Result<Vec<WordRule>> {
    let table: toml::Table = text.parse().with_context(|| format!("{WORDS} is not TOML"))?;
    let rule = |(name, section): (String, toml::Value)| {
        let section: Section =
            section.try_into().with_context(|| format!("{WORDS}: [{name}] is incomplete"))?;
        if section.places.is_empty() {
            bail!("{WORDS}: [{name}] reads nothing; `in` must name a place");
        }
        let regex = |pattern: &str| {
            Regex::new(pattern).with_context(|| format!("{WORDS}: [{name}] has a broken pattern"))
        };
        Ok(WordRule {
            pattern: regex(&section.pattern)?,
            unless: section.unless.as_deref().map(regex).transpose()?,
            places: section.places,
            say: section.say,
            name,
        })
    };
    table.into_iter().map(rule).collect()
}

/// Returns the findings of each rule. All patterns are matched in one pass.
pub(super) fn check(rules: &[WordRule], tree: &Tree) -> Result<Vec<Findings>> {
    let patterns = RegexSet::new(rules.iter().map(|rule| rule.pattern.as_str()))?;
    let mut found: Vec<Findings> = rules.iter().map(|_| Findings::default()).collect();
    each_text(tree, |file, line, place, text| {
        for index in patterns.matches(text) {
            let rule = &rules[index];
            if rule.places.contains(&place) {
                found[index].0.extend(rule.finding(file, line, text));
            }
        }
    });
    Ok(found)
}

/// Calls `judge` with each text of the project and its place.
fn each_text(tree: &Tree, mut judge: impl FnMut(&File, usize, Place, &str)) {
    for file in tree.files() {
        if file.path.ends_with(".md") && !QUOTED.contains(&file.path.as_str()) {
            for (index, line) in file.text.lines().enumerate() {
                judge(file, index + 1, Place::Pages, line);
            }
        }
    }
    for file in tree.rust_files() {
        for line in file.lines_without_tests().filter(|_| !file.is_test()) {
            if !line.comment.is_empty() {
                judge(file, line.number, Place::Comments, line.comment.trim());
            }
            for text in line.literals.iter().filter(|text| text.contains(' ')) {
                judge(file, line.number, Place::Strings, text);
            }
        }
        for (line, name) in test_names(file.lines()) {
            judge(file, line, Place::Tests, name);
        }
    }
}

impl WordRule {
    /// Returns the finding for a text that matches, unless the exception matches too.
    fn finding(&self, file: &File, line: usize, text: &str) -> Option<(String, usize, String)> {
        let excepted = self.unless.as_ref().is_some_and(|unless| unless.is_match(text));
        let found = self.pattern.find(text).filter(|_| !excepted)?;
        let message = format!("`{}`: {}", found.as_str().trim(), self.say);
        Some((file.path.clone(), line, message))
    }
}

/// Functions that follow a test attribute, with their lines.
fn test_names(lines: &[Line]) -> impl Iterator<Item = (usize, &str)> {
    let mut is_test = false;
    lines.iter().filter_map(move |line| {
        let code = line.code.trim();
        if code.starts_with("#[") {
            is_test |= code.starts_with("#[test") || code.contains("::test");
            return None;
        }
        let (_, name) = code.split_once("fn ")?;
        let end = name.find(|char: char| !char.is_alphanumeric() && char != '_')?;
        std::mem::take(&mut is_test).then_some((line.number, &name[..end]))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::{WORDS, check, rules};

    const RULES: &str = "[actor]\npattern = 'nobody'\nunless = 'nobody else'\n\
                         in = [\"comments\", \"strings\", \"pages\"]\nsay = \"name the actor\"\n\
                         [name]\npattern = '^a_'\nin = [\"tests\"]\nsay = \"no article\"\n";

    fn found(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[(path, text)]);
        let found = check(&rules(RULES).unwrap(), &tree).unwrap().into_iter();
        let found = found.flat_map(|findings| findings.0);
        found.map(|(_, line, message)| format!("{line}: {message}")).collect()
    }

    #[test]
    fn word_rules_read_comments_strings_and_pages() {
        let text =
            "// nobody\nlet a = \"nobody\";\nlet b = \"nobody here\";\nnobody();\n// nobody else\n";
        assert_eq!(
            found("crates/a/src/lib.rs", text),
            ["1: `nobody`: name the actor", "3: `nobody`: name the actor"]
        );
        assert_eq!(found("docs/a.md", "a\nnobody\n"), ["2: `nobody`: name the actor"]);
        assert!(found("docs/requirements.md", "nobody\n").is_empty());
    }

    #[test]
    fn word_rules_skip_comments_and_strings_of_tests() {
        let text = "#[cfg(test)]\nmod tests {\n    // nobody\n}\n";
        assert!(found("crates/a/src/lib.rs", text).is_empty());
        assert!(found("crates/a/tests/it/a.rs", "// nobody\n").is_empty());
    }

    #[test]
    fn word_rules_read_names_of_tests_but_not_of_helpers() {
        let text = "#[tokio::test(start_paused = true)]\n// Why.\nasync fn a_test() {}\nfn a_helper() {}\n";
        assert_eq!(found("crates/a/tests/it/a.rs", text), ["3: `a_`: no article"]);
    }

    #[test]
    fn invalid_word_rules_name_their_section() {
        let broken = [
            ("[a]\npattern = '('\nin = [\"pages\"]\nsay = ''\n", "[a] has a broken pattern"),
            ("[a]\npattern = 'x'\n", "[a] is incomplete"),
            ("[a]\npattern = 'x'\nin = []\nsay = ''\n", "[a] reads nothing"),
            ("[", "is not TOML"),
        ];
        for (text, message) in broken {
            let error = rules(text).map(drop).unwrap_err().to_string();
            assert!(error.starts_with(WORDS) && error.contains(message), "{error}");
        }
    }
}
