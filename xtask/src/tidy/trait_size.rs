//! A trait has at most 7 methods; more need a `[[trait]]` entry with a reason in
//! `xtask/tidy-allow.toml`.

use super::allow::{self, ALLOWED};
use super::findings::Findings;
use super::tree::Tree;

const LIMIT: usize = 7;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let allowed = allow::entries(tree, "trait");
    for file in tree.source_files() {
        for found in tree.facts(&file.path).iter().flat_map(|facts| &facts.traits) {
            let entry =
                allowed.iter().find(|entry| entry.path == file.path && entry.name == found.name);
            match entry {
                None if found.methods > LIMIT => {
                    let message = format!(
                        "trait `{}` has {} methods; the limit is {LIMIT} without a reason in {ALLOWED}",
                        found.name, found.methods
                    );
                    findings.add(&file.path, found.line, message);
                }
                Some(entry) if found.methods <= LIMIT => {
                    let message =
                        format!("trait `{}` is no longer too large; remove the entry", found.name);
                    findings.add(ALLOWED, entry.line, message);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{ALLOWED, check};

    #[test]
    fn trait_over_7_methods_without_reason_is_finding() {
        let text = |methods: usize| format!("trait A {{ {} }}\n", "fn b();".repeat(methods));
        let entry =
            "[[trait]]\npath = \"crates/x/src/a.rs\"\nname = \"A\"\nreason = \"one machine\"\n";
        let path = "crates/x/src/a.rs";
        assert!(found(check, &[(path, &text(7))]).is_empty());
        assert!(found(check, &[(path, &text(8))])[0].contains("`A` has 8 methods"));
        assert!(found(check, &[(path, &text(8)), (ALLOWED, entry)]).is_empty());
        assert!(
            found(check, &[(path, &text(7)), (ALLOWED, entry)])[0].contains("remove the entry")
        );
    }
}
