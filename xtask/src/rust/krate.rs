//! One crate: its modules, and the file that each import refers to.
//!
//! A name through a `pub use` belongs to the file that defines it. Names of other crates belong to
//! no file.

use std::collections::HashMap;

use super::facts::{Facts, Scope, Use};

/// A crate, from its `lib.rs` or `main.rs`.
#[derive(Debug)]
pub(crate) struct Krate<'a> {
    modules: Vec<Module<'a>>,
    /// The paths of the files, in the order of discovery.
    pub(crate) files: Vec<&'a str>,
}

#[derive(Debug)]
struct Module<'a> {
    parent: Option<usize>,
    children: HashMap<&'a str, usize>,
    file: usize,
    scope: &'a Scope,
}

/// An import of one file by another.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) from: usize,
    pub(crate) line: usize,
    pub(crate) to: usize,
    /// The imported path as written.
    pub(crate) name: String,
}

/// The target of a path.
#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item of this module.
    Item(usize),
}

/// Maximum number of re-exports of one name; more are a cycle.
const DEEPEST: usize = 16;

impl<'a> Krate<'a> {
    /// Joins the files that are reachable from `root`.
    pub(crate) fn new(root: &'a str, facts: &HashMap<&'a str, &'a Facts>) -> Self {
        let mut krate = Self { modules: Vec::new(), files: Vec::new() };
        krate.add_file(root, None, facts);
        krate
    }

    fn add_file(
        &mut self,
        path: &'a str,
        parent: Option<usize>,
        facts: &HashMap<&'a str, &'a Facts>,
    ) -> Option<usize> {
        let scopes = &facts.get(path)?.scopes;
        let file = self.files.len();
        self.files.push(path);
        let first = self.modules.len();
        let folder = folder(path);
        for scope in scopes {
            // An inline module is in the module whose path is one name shorter, which came earlier.
            let around = scope.path.split_last().map(|(_, around)| around);
            let parent = around.map_or(parent, |around| {
                (first..self.modules.len())
                    .rev()
                    .find(|&known| self.modules[known].scope.path == around)
            });
            let module = Module { parent, children: HashMap::new(), file, scope };
            self.modules.push(module);
            if let (Some(parent), Some(name)) = (parent, scope.path.last()) {
                let id = self.modules.len() - 1;
                self.modules[parent].children.insert(name, id);
            }
        }
        for id in first..first + scopes.len() {
            let scope = self.modules[id].scope;
            for name in &scope.files {
                let inner = scope.path.iter().chain([name]).map(String::as_str);
                let stem = inner.fold(folder.to_owned(), |path, part| path + "/" + part);
                let there = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
                let found = there.iter().find_map(|path| facts.get_key_value(path.as_str()));
                if let Some((path, _)) = found
                    && let Some(child) = self.add_file(path, Some(id), facts)
                {
                    self.modules[id].children.insert(name, child);
                }
            }
        }
        Some(first)
    }

    /// Returns every import between files of this crate.
    pub(crate) fn imports(&self) -> Vec<Import> {
        let mut imports = Vec::new();
        for (id, module) in self.modules.iter().enumerate() {
            // A pure re-export is not an import: other files import the name from its defining
            // file.
            let is_import = |used: &&Use| {
                !used.exported
                    || used
                        .alias
                        .as_ref()
                        .is_some_and(|alias| module.scope.mentioned.contains(alias))
            };
            let uses = module.scope.uses.iter().filter(is_import);
            let uses = uses.map(|used| (&used.path, used.line));
            let paths = module.scope.paths.iter().map(|path| (&path.path, path.line));
            for (path, line) in uses.chain(paths) {
                if let Some(Target::Item(target)) = self.resolve(id, path, DEEPEST) {
                    let to = self.modules[target].file;
                    if to != module.file {
                        imports.push(Import { from: module.file, line, to, name: path.join("::") });
                    }
                }
            }
        }
        imports
    }

    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Option<Target> {
        let depth = depth.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Target::Module(self.root(from)),
            "self" => Target::Module(from),
            "super" => Target::Module(self.modules[from].parent?),
            name => self.lookup(from, name, rest.is_empty(), depth)?,
        };
        while let (Target::Module(module), Some((name, behind))) = (target, rest.split_first()) {
            target = match name.as_str() {
                "super" => Target::Module(self.modules[module].parent?),
                name => self.lookup(module, name, behind.is_empty(), depth)?,
            };
            rest = behind;
        }
        Some(target)
    }

    fn root(&self, mut module: usize) -> usize {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }

    /// Resolves a name in a module. At the end of a path an item precedes a module of the same
    /// name.
    fn lookup(&self, id: usize, name: &str, last: bool, depth: usize) -> Option<Target> {
        let module = &self.modules[id];
        let child = module.children.get(name).map(|&child| Target::Module(child));
        let item = module.scope.items.iter().any(|item| item == name).then_some(Target::Item(id));
        match last {
            true => item.or_else(|| self.imported(id, name, last, depth)).or(child),
            false => child.or(item).or_else(|| self.imported(id, name, last, depth)),
        }
    }

    /// Resolves an imported name of a module.
    fn imported(&self, id: usize, name: &str, last: bool, depth: usize) -> Option<Target> {
        let uses = &self.modules[id].scope.uses;
        let aliased = |used: &&Use| used.alias.as_deref() == Some(name);
        for used in uses.iter().filter(aliased) {
            // `use x::x` refers to something outside the module, never to itself.
            let is_itself = used.path.len() == 1 && used.path[0] == name;
            if !is_itself && let Some(target) = self.resolve(id, &used.path, depth) {
                return Some(target);
            }
        }
        for glob in uses.iter().filter(|used| used.alias.is_none()) {
            if let Some(Target::Module(target)) = self.resolve(id, &glob.path, depth)
                && target != id
                && let Some(found) = self.lookup(target, name, last, depth.checked_sub(1)?)
            {
                return Some(found);
            }
        }
        None
    }
}

/// Returns the folder of a file's child modules.
fn folder(path: &str) -> &str {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    match stem.rsplit_once('/') {
        Some((folder, "mod" | "lib" | "main")) => folder,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::read;
    use super::Krate;

    /// The imports of a crate with the root `s/lib.rs`.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let facts: Vec<_> = files.iter().map(|(path, text)| (*path, read(text).unwrap())).collect();
        let facts: HashMap<&str, &_> = facts.iter().map(|(path, facts)| (*path, facts)).collect();
        let krate = Krate::new("s/lib.rs", &facts);
        let shown = |import: super::Import| {
            format!("{}:{} {}", krate.files[import.from], import.line, krate.files[import.to])
        };
        krate.imports().into_iter().map(shown).collect()
    }

    #[test]
    fn reexported_name_resolves_to_defining_file() {
        let found = imports(&[
            ("s/lib.rs", "mod a;\nmod b;\n"),
            ("s/a/mod.rs", "mod c;\npub(crate) use self::c::C as D;\n"),
            ("s/a/c.rs", "pub(crate) struct C;\n"),
            ("s/b.rs", "use crate::a::{self, D};\nfn f() { a::D; }\n"),
        ]);
        assert_eq!(found, ["s/b.rs:1 s/a/c.rs", "s/b.rs:2 s/a/c.rs"]);
    }

    #[test]
    fn reexported_and_used_name_is_an_import() {
        let found = imports(&[
            ("s/lib.rs", "mod a;\npub use a::{A, B};\nfn f() -> Option<A> { None }\n"),
            ("s/a.rs", "pub struct A;\npub struct B;\n"),
        ]);
        assert_eq!(found, ["s/lib.rs:2 s/a.rs"]);
    }

    #[test]
    fn function_precedes_module_of_same_name() {
        let found = imports(&[
            ("s/lib.rs", "mod a;\nmod b;\n"),
            ("s/a/mod.rs", "mod open;\npub(crate) use open::open;\n"),
            ("s/a/open.rs", "pub(crate) fn open() {}\n"),
            ("s/b.rs", "use crate::a::open;\n"),
        ]);
        assert_eq!(found, ["s/b.rs:1 s/a/open.rs"]);
    }

    #[test]
    fn names_imported_by_parent_are_resolved() {
        let found = imports(&[
            ("s/lib.rs", "mod a;\nmod b;\n"),
            ("s/a.rs", "mod c;\nuse crate::b::B;\n"),
            ("s/a/c.rs", "use super::B;\n"),
            ("s/b.rs", "pub(crate) struct B;\n"),
        ]);
        assert_eq!(found, ["s/a.rs:2 s/b.rs", "s/a/c.rs:1 s/b.rs"]);
    }

    #[test]
    fn globs_inline_modules_and_macros_are_resolved() {
        let found = imports(&[
            ("s/lib.rs", "mod a;\nmod b;\npub mod p { pub use crate::b::B; }\n"),
            ("s/a.rs", "use crate::p::*;\nfn f() { g!(crate::p::B, std::x::Y); }\n"),
            ("s/b.rs", "pub struct B;\n"),
        ]);
        assert_eq!(found, ["s/a.rs:2 s/b.rs"]);
    }

    #[test]
    fn external_and_circular_names_are_not_imports() {
        let found = imports(&[
            ("s/lib.rs", "mod a;\npub use self::a::A;\n"),
            ("s/a.rs", "use serde::Serialize;\npub use crate::A;\nfn f() { std::mem::take(); }\n"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
