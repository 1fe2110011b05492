//! An import goes to a lower layer or stays in its layer. `xtask/layers.toml` defines the layers.
//!
//! Every file of a stack belongs to one layer: that of the longest entry that names it or its
//! folder.

use super::findings::Findings;
use super::tree::Tree;
use crate::rust::{Import, Krate};

pub(super) const LAYERS: &str = "xtask/layers.toml";

/// A part of the project, and its layers from the bottom up.
struct Stack {
    name: String,
    /// A folder that ends with `/`.
    root: String,
    layers: Vec<Vec<String>>,
}

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let Some(file) = tree.get(LAYERS) else { return };
    let stacks = match stacks(&file.text) {
        Ok(stacks) => stacks,
        Err(error) => return findings.add(LAYERS, 1, error),
    };
    for krate in tree.crates() {
        let imports = krate.imports();
        for stack in &stacks {
            upward(stack, &krate, &imports, findings);
        }
    }
}

/// Checks that every file has a layer and every entry has a file. This rule has no ceiling: a new
/// file gets its layer when it is written.
pub(super) fn check_places(tree: &Tree, findings: &mut Findings) {
    let Some(file) = tree.get(LAYERS) else { return };
    for stack in stacks(&file.text).unwrap_or_default() {
        for entry in stack.layers.iter().flatten() {
            if !tree.has(&format!("{}{entry}", stack.root)) {
                let line =
                    file.text.lines().position(|line| line.contains(&format!("\"{entry}\"")));
                let message = format!(
                    "{}{entry} does not exist; remove it from `{}`",
                    stack.root, stack.name
                );
                findings.add(LAYERS, line.unwrap_or(0) + 1, message);
            }
        }
        for file in tree.source_files().filter(|file| file.path.starts_with(&stack.root)) {
            if stack.layer(&file.path).is_none() {
                let message =
                    format!("no layer contains this file; add it to `{}` in {LAYERS}", stack.name);
                findings.add(&file.path, 1, message);
            }
        }
    }
}

fn upward(stack: &Stack, krate: &Krate<'_>, imports: &[Import], findings: &mut Findings) {
    let mut known = Vec::new();
    for import in imports {
        let (from, to) = (krate.files[import.from], krate.files[import.to]);
        let (Some(lower), Some(upper)) = (stack.layer(from), stack.layer(to)) else { continue };
        if lower < upper && !known.contains(&(from, to)) {
            known.push((from, to));
            let message = format!(
                "layer {lower} of `{}` imports {to} ({}) of layer {upper}",
                stack.name, import.name
            );
            findings.add(from, import.line, message);
        }
    }
}

impl Stack {
    fn layer(&self, path: &str) -> Option<usize> {
        let path = path.strip_prefix(&self.root)?;
        let entries = self.layers.iter().enumerate();
        let entries =
            entries.flat_map(|(layer, entries)| entries.iter().map(move |entry| (layer, entry)));
        let fitting = entries.filter(|(_, entry)| {
            if is_folder(entry) { path.starts_with(entry.as_str()) } else { path == *entry }
        });
        fitting.max_by_key(|(_, entry)| entry.len()).map(|(layer, _)| layer)
    }
}

/// The empty entry is the folder of the stack itself.
fn is_folder(entry: &str) -> bool {
    entry.is_empty() || entry.ends_with('/')
}

fn stacks(text: &str) -> Result<Vec<Stack>, String> {
    let table: toml::Table = text.parse().map_err(|error| format!("this is not TOML: {error}"))?;
    let mut stacks = Vec::new();
    for (name, stack) in table {
        let root = stack.get("root").and_then(toml::Value::as_str);
        let layers = stack.get("layers").and_then(toml::Value::as_array);
        let (Some(root), Some(layers)) = (root, layers) else {
            return Err(format!("`{name}` needs `root` and `layers`"));
        };
        let texts = |layer: &toml::Value| {
            let entries = layer.as_array()?.iter();
            entries.map(|entry| Some(entry.as_str()?.to_owned())).collect::<Option<Vec<String>>>()
        };
        let layers = layers.iter().map(texts).collect::<Option<Vec<Vec<String>>>>();
        let layers =
            layers.ok_or_else(|| format!("`{name}.layers` must be a list of lists of paths"))?;
        stacks.push(Stack { name, root: root.to_owned(), layers });
    }
    Ok(stacks)
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{LAYERS, check, check_places};

    const TWO: &str =
        "[x]\nroot = \"crates/x/src/\"\nlayers = [\n  [\"a.rs\", \"lib.rs\"],\n  [\"b/\"],\n]\n";

    #[test]
    fn import_from_higher_layer_is_finding() {
        let found = found(
            check,
            &[
                (LAYERS, TWO),
                ("crates/x/src/lib.rs", "mod a;\nmod b;\n"),
                ("crates/x/src/a.rs", "use crate::b::C;\npub struct A;\n"),
                ("crates/x/src/b/mod.rs", "mod c;\npub use c::C;\n"),
                ("crates/x/src/b/c.rs", "use crate::a::A;\npub struct C;\n"),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/x/src/a.rs:1: layer 0 of `x` imports crates/x/src/b/c.rs (crate::b::C) of layer 1"
            ]
        );
    }

    #[test]
    fn file_without_layer_and_entry_without_file_are_findings() {
        let files = [(LAYERS, TWO), ("crates/x/src/lib.rs", ""), ("crates/x/src/d.rs", "")];
        let found = found(check_places, &files);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("crates/x/src/d.rs:1: no layer"), "{found:?}");
        assert!(
            found[1].starts_with("xtask/layers.toml:4: crates/x/src/a.rs does not exist"),
            "{found:?}"
        );
    }

    #[test]
    fn longest_layer_entry_applies() {
        let layers = "[x]\nroot = \"crates/x/src/\"\nlayers = [[\"b/c.rs\"], [\"\"]]\n";
        let files = [
            (LAYERS, layers),
            ("crates/x/src/lib.rs", "mod b;\n"),
            ("crates/x/src/b/mod.rs", "mod c;\nmod d;\n"),
            ("crates/x/src/b/c.rs", "use super::d::D;\n"),
            ("crates/x/src/b/d.rs", "pub struct D;\n"),
        ];
        assert_eq!(found(check, &files).len(), 1);
    }
}
