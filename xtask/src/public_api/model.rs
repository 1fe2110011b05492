//! The libraries of the workspace as modules, items and re-exports, with names resolved across
//! crates.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::TokenStream;
use syn::{Item, ItemImpl, UseTree, Visibility};

use crate::rust::{attrs, is_for_tests};

#[derive(Default)]
pub(super) struct Model {
    pub(super) modules: Vec<Module>,
    /// The root modules by crate name.
    pub(super) roots: BTreeMap<String, usize>,
    /// `impl` blocks with their module.
    pub(super) impls: Vec<(usize, ItemImpl)>,
    /// `macro_rules!` by name.
    pub(super) macros: HashMap<String, TokenStream>,
}

pub(super) struct Module {
    pub(super) krate: String,
    parent: Option<usize>,
    pub(super) children: BTreeMap<String, Child>,
    /// Named items, including those of macros.
    pub(super) items: BTreeMap<String, Item>,
    /// Macro calls between items.
    pub(super) calls: Vec<syn::ItemMacro>,
    pub(super) exports: Vec<Export>,
}

#[derive(Clone, Copy)]
pub(super) struct Child {
    pub(super) module: usize,
    pub(super) public: bool,
}

/// A name of a `use`.
pub(super) struct Export {
    pub(super) name: String,
    pub(super) path: Vec<String>,
    pub(super) public: bool,
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Def {
    Module(usize),
    /// An item of a module. An item that a macro generates has no syntax tree.
    Item(usize, String),
}

/// Maximum number of re-exports of one name.
const DEEPEST: usize = 16;

impl Model {
    /// Reads libraries, given as crate name and path of `lib.rs`.
    pub(super) fn read(libraries: &[(String, PathBuf)]) -> Result<Self> {
        let mut model = Self::default();
        for (name, path) in libraries {
            let folder = path.parent().context("a library has a folder")?;
            let root = model.file(name, path, folder, None)?;
            model.roots.insert(name.clone(), root);
        }
        Ok(model)
    }

    fn file(
        &mut self,
        krate: &str,
        path: &Path,
        folder: &Path,
        parent: Option<usize>,
    ) -> Result<usize> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file =
            syn::parse_file(&text).with_context(|| format!("{} is not Rust", path.display()))?;
        self.module(krate, file.items, folder, parent)
    }

    fn module(
        &mut self,
        krate: &str,
        items: Vec<Item>,
        folder: &Path,
        parent: Option<usize>,
    ) -> Result<usize> {
        let id = self.modules.len();
        let (children, items_of) = (BTreeMap::new(), BTreeMap::new());
        let krate_name = krate.to_owned();
        self.modules.push(Module {
            krate: krate_name,
            parent,
            children,
            items: items_of,
            calls: Vec::new(),
            exports: Vec::new(),
        });
        for item in items {
            if is_for_tests(attrs(&item)) {
                continue;
            }
            self.item(krate, id, item, folder)?;
        }
        Ok(id)
    }

    fn item(&mut self, krate: &str, id: usize, item: Item, folder: &Path) -> Result<()> {
        match item {
            Item::Mod(item) => {
                let name = item.ident.to_string();
                let public = matches!(item.vis, Visibility::Public(_));
                let inner = folder.join(&name);
                let module = match item.content {
                    Some((_, items)) => self.module(krate, items, &inner, Some(id))?,
                    None => {
                        let flat = folder.join(format!("{name}.rs"));
                        let path = if flat.exists() { flat } else { inner.join("mod.rs") };
                        self.file(krate, &path, &inner, Some(id))?
                    }
                };
                self.modules[id].children.insert(name, Child { module, public });
            }
            Item::Use(item) => {
                let public = matches!(item.vis, Visibility::Public(_));
                exports(&item.tree, &mut Vec::new(), public, &mut self.modules[id].exports);
            }
            Item::Impl(item) => self.impls.push((id, item)),
            Item::Macro(item) => match &item.ident {
                Some(ident) => {
                    self.macros.insert(ident.to_string(), item.mac.tokens);
                }
                None => self.modules[id].calls.push(item),
            },
            item => {
                if let Some(name) = name(&item) {
                    self.modules[id].items.insert(name, item);
                }
            }
        }
        Ok(())
    }

    pub(super) fn resolve(&self, from: usize, path: &[String]) -> Option<Def> {
        self.resolve_within(from, path, DEEPEST)
    }

    fn resolve_within(&self, from: usize, path: &[String], depth: usize) -> Option<Def> {
        let depth = depth.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut def = match first.as_str() {
            "crate" => Def::Module(*self.roots.get(&self.modules[from].krate)?),
            "self" => Def::Module(from),
            "super" => Def::Module(self.modules[from].parent?),
            name => self
                .lookup(from, name, rest.is_empty(), depth)
                .or_else(|| self.roots.get(name).map(|&root| Def::Module(root)))?,
        };
        while let (Def::Module(module), Some((name, behind))) = (&def, rest.split_first()) {
            def = match name.as_str() {
                "super" => Def::Module(self.modules[*module].parent?),
                name => self.lookup(*module, name, behind.is_empty(), depth)?,
            };
            rest = behind;
        }
        Some(def)
    }

    fn lookup(&self, id: usize, name: &str, last: bool, depth: usize) -> Option<Def> {
        let module = &self.modules[id];
        let child = module.children.get(name).map(|child| Def::Module(child.module));
        let item = module.items.contains_key(name).then(|| Def::Item(id, name.to_owned()));
        let exported = || {
            let exports = module.exports.iter().filter(|export| export.name == name);
            let mut exports = exports.filter(|export| export.path != [name]);
            exports.find_map(|export| self.resolve_within(id, &export.path, depth))
        };
        // An item that a macro generates: its call contains the name.
        let called = || {
            let has = |call: &&syn::ItemMacro| mentions(&call.mac.tokens, name);
            module.calls.iter().find(has).map(|_| Def::Item(id, name.to_owned()))
        };
        // At the end of a path an item precedes a module of the same name, also through re-exports.
        match last {
            true => item.or_else(exported).or(child).or_else(called),
            false => child.or(item).or_else(exported).or_else(called),
        }
    }
}

/// Whether a name occurs in these tokens.
pub(super) fn mentions(tokens: &TokenStream, name: &str) -> bool {
    tokens.clone().into_iter().any(|token| match token {
        proc_macro2::TokenTree::Ident(ident) => ident == name,
        proc_macro2::TokenTree::Group(group) => mentions(&group.stream(), name),
        _ => false,
    })
}

fn exports(tree: &UseTree, prefix: &mut Vec<String>, public: bool, found: &mut Vec<Export>) {
    let mut add = |name: String, last: Option<String>| {
        let path = prefix.iter().cloned().chain(last).collect();
        found.push(Export { name, path, public });
    };
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            exports(&path.tree, prefix, public, found);
            prefix.pop();
        }
        UseTree::Group(group) => {
            for tree in &group.items {
                exports(tree, prefix, public, found);
            }
        }
        UseTree::Name(name) if name.ident == "self" => {
            add(prefix.last().cloned().unwrap_or_default(), None);
        }
        UseTree::Name(name) => add(name.ident.to_string(), Some(name.ident.to_string())),
        UseTree::Rename(name) if name.ident == "self" => add(name.rename.to_string(), None),
        UseTree::Rename(name) => add(name.rename.to_string(), Some(name.ident.to_string())),
        // tidy rejects glob re-exports.
        UseTree::Glob(_) => {}
    }
}

fn name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}
