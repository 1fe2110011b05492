//! Retired names in `xtask/old-names.toml`: no public name and no file may use them.
//!
//! `"Old" = "New"` is an item; `"Type::old" = "new"` is a field, variant or method of a type, under
//! its new or its old name. A section is the folder of the name. `[files]` has paths without `.rs`.

use super::findings::Findings;
use super::tree::Tree;

pub(super) const NAMES: &str = "xtask/old-names.toml";

/// A rename in one folder.
struct Renamed {
    folder: String,
    /// The types that `old` is a member of: new name and old name.
    of: Vec<String>,
    old: String,
    new: String,
}

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let Some(file) = tree.get(NAMES) else { return };
    let table: toml::Table = match file.text.parse() {
        Ok(table) => table,
        Err(error) => return findings.add(NAMES, 1, format!("this is not TOML: {error}")),
    };
    let mut renamed = Vec::new();
    for (section, names) in &table {
        for (old, new) in names.as_table().into_iter().flatten() {
            let Some(new) = new.as_str() else {
                return findings.add(NAMES, 1, format!("`{old}` has no new name"));
            };
            match section.as_str() {
                "files" => files(tree, old, new, findings),
                folder => renamed.push(Renamed::new(folder, old, new)),
            }
        }
    }
    know_old_types(&mut renamed);
    for file in tree.source_files() {
        let here: Vec<&Renamed> =
            renamed.iter().filter(|entry| file.path.starts_with(&entry.folder)).collect();
        for name in tree.facts(&file.path).iter().flat_map(|facts| &facts.names) {
            let old = here.iter().find(|entry| {
                entry.old == name.name
                    && match &name.of {
                        Some(of) => entry.of.contains(of),
                        None => entry.of.is_empty(),
                    }
            });
            if let Some(old) = old {
                let of = name.of.as_ref().map_or_else(String::new, |of| format!("{of}::"));
                let message = format!("`{of}{}` is now called `{}`", old.old, old.new);
                findings.add(&file.path, name.line, message);
            }
        }
    }
}

impl Renamed {
    fn new(folder: &str, old: &str, new: &str) -> Self {
        let (of, old) = match old.split_once("::") {
            Some((of, old)) => (vec![of.to_owned()], old),
            None => (Vec::new(), old),
        };
        Self { folder: folder.to_owned(), of, old: old.to_owned(), new: new.to_owned() }
    }
}

/// A type may still have its old name.
fn know_old_types(renamed: &mut [Renamed]) {
    let types: Vec<(String, String)> = renamed
        .iter()
        .filter(|entry| entry.of.is_empty())
        .map(|entry| (entry.old.clone(), entry.new.clone()))
        .collect();
    for entry in renamed.iter_mut() {
        let Some(of) = entry.of.first().cloned() else { continue };
        entry.of.extend(types.iter().filter(|(_, new)| *new == of).map(|(old, _)| old.clone()));
    }
}

fn files(tree: &Tree, old: &str, new: &str, findings: &mut Findings) {
    let there = [old.to_owned(), format!("{old}.rs"), format!("{old}/mod.rs")];
    for path in there.iter().filter(|path| tree.get(path).is_some()) {
        findings.add(path, 1, format!("this file is now called `{new}`"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{NAMES, check};

    const LIST: &str = "[files]\n\"crates/x/src/fault\" = \"error\"\n\
                        [\"crates/x/\"]\n\"Fault\" = \"ProtocolError\"\n\"ProtocolError::Busy\" = \"RateLimited\"\n";

    #[test]
    fn retired_public_names_and_files_are_findings() {
        let found = found(
            check,
            &[
                (NAMES, LIST),
                ("crates/x/src/fault.rs", "pub enum Fault { Busy }\nstruct Busy;\n"),
                ("crates/x/src/other.rs", "pub enum Other { Busy }\n"),
                ("crates/y/src/lib.rs", "pub struct Fault;\n"),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/x/src/fault.rs:1: `Fault::Busy` is now called `RateLimited`",
                "crates/x/src/fault.rs:1: `Fault` is now called `ProtocolError`",
                "crates/x/src/fault.rs:1: this file is now called `error`",
            ]
        );
    }

    #[test]
    fn retired_members_are_found_under_new_type_name() {
        let text = "pub struct ProtocolError;\nimpl ProtocolError { pub const Busy: u8 = 0; fn busy() {} }\n";
        let found = found(check, &[(NAMES, LIST), ("crates/x/src/error.rs", text)]);
        assert_eq!(
            found,
            ["crates/x/src/error.rs:2: `ProtocolError::Busy` is now called `RateLimited`"]
        );
    }
}
