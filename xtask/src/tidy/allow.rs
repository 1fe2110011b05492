//! `xtask/tidy-allow.toml`: exceptions of the rules, each with its reason.

use super::findings::Findings;
use super::tree::Tree;

pub(super) const ALLOWED: &str = "xtask/tidy-allow.toml";

/// The rules with exceptions, as the headers of their entries.
const KINDS: &[&str] = &["long", "trait", "any"];

#[derive(Default)]
pub(super) struct Entry {
    kind: String,
    pub(super) line: usize,
    pub(super) path: String,
    /// The trait, if a file has several.
    pub(super) name: String,
    pub(super) reason: String,
}

/// The entries of one kind.
pub(super) fn entries(tree: &Tree, kind: &str) -> Vec<Entry> {
    let text = tree.get(ALLOWED).map_or("", |file| file.text.as_str());
    read(text, &mut Findings::default()).into_iter().filter(|entry| entry.kind == kind).collect()
}

/// Checks that every entry has its keys and names an existing file.
pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let text = tree.get(ALLOWED).map_or("", |file| file.text.as_str());
    for entry in read(text, findings) {
        if tree.get(&entry.path).is_none() {
            let message = format!("{} does not exist; remove the entry", entry.path);
            findings.add(ALLOWED, entry.line, message);
        }
        if entry.reason.is_empty() {
            findings.add(ALLOWED, entry.line, "the entry has no reason");
        }
    }
}

/// Parses the list. It is written by hand with three keys, so it needs no TOML parser.
fn read(text: &str, findings: &mut Findings) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let kind = line.strip_prefix("[[").and_then(|rest| rest.strip_suffix("]]"));
        if let Some(kind) = kind.filter(|kind| KINDS.contains(kind)) {
            let kind = kind.to_owned();
            entries.push(Entry { kind, line: index + 1, ..Entry::default() });
            continue;
        }
        let field = line.split_once('=').and_then(|(key, value)| {
            let value = value.trim().strip_prefix('"')?.strip_suffix('"')?;
            let entry = entries.last_mut()?;
            let field = match key.trim() {
                "path" => &mut entry.path,
                "name" => &mut entry.name,
                "reason" => &mut entry.reason,
                _ => return None,
            };
            value.clone_into(field);
            Some(())
        });
        if field.is_none() {
            let kinds = KINDS.join("]]`, `[[");
            let message = format!("expected `[[{kinds}]]` with `path`, `name` and `reason`");
            findings.add(ALLOWED, index + 1, message);
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::super::tree::Tree;
    use super::{ALLOWED, check, entries};

    const ENTRY: &str =
        "# Why.\n[[trait]]\npath = \"a.rs\"\nname = \"A\"\nreason = \"one machine\"\n";

    #[test]
    fn allow_entries_are_parsed_by_kind() {
        let tree = Tree::of(&[(ALLOWED, ENTRY)]);
        assert!(entries(&tree, "long").is_empty());
        let read = entries(&tree, "trait");
        assert_eq!((read[0].path.as_str(), read[0].name.as_str(), read[0].line), ("a.rs", "A", 2));
    }

    #[test]
    fn allow_entry_with_missing_file_reason_or_other_keys_is_finding() {
        assert!(found(check, &[("a.rs", ""), (ALLOWED, ENTRY)]).is_empty());
        assert!(found(check, &[(ALLOWED, ENTRY)])[0].contains("does not exist"));
        let entry = "[[long]]\npath = \"a.rs\"\nlines = 600\n";
        assert_eq!(found(check, &[("a.rs", ""), (ALLOWED, entry)]).len(), 2);
    }
}
