//! `dyn Any` hides the type of a value. The allowed places are `[[any]]` entries in
//! `xtask/tidy-allow.toml`.

use super::allow::{self, ALLOWED};
use super::findings::Findings;
use super::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let allowed = allow::entries(tree, "any");
    for file in tree.source_files() {
        let lines = tree.facts(&file.path).map_or(&[][..], |facts| &facts.any_objects);
        match allowed.iter().find(|entry| entry.path == file.path) {
            Some(entry) if lines.is_empty() => {
                let message = format!("{} no longer has `dyn Any`; remove the entry", file.path);
                findings.add(ALLOWED, entry.line, message);
            }
            Some(_) => {}
            None => {
                for &line in lines {
                    findings.add(&file.path, line, "`dyn Any`; name the type, or make it an enum");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{ALLOWED, check};

    #[test]
    fn dyn_any_outside_allowed_files_is_finding() {
        let entry = "[[any]]\npath = \"crates/x/src/a.rs\"\nreason = \"values by their type\"\n";
        let files = [("crates/x/src/a.rs", "struct A(Box<dyn Any + Send>);\n")];
        assert_eq!(found(check, &files).len(), 1);
        assert!(found(check, &[files[0], (ALLOWED, entry)]).is_empty());
        let gone = [("crates/x/src/a.rs", "struct A;\n"), (ALLOWED, entry)];
        assert!(found(check, &gone)[0].contains("remove the entry"));
    }
}
