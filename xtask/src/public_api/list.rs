//! Lists everything that is reachable from the root of a crate: one line per name, field, variant,
//! method and `impl`.

use std::collections::HashMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::{Fields, ImplItem, Item, ItemImpl, TraitItem, Type, Visibility};

use super::model::{Def, Model, mentions};
use super::text::code;
use crate::rust::{attrs, is_for_tests};

/// A crate with its own snapshot: other listings only mention the re-export of its names.
const APART: &str = "outlive_wire";

/// Returns every public line of a crate, sorted.
pub(super) fn list(model: &Model, krate: &str) -> Vec<String> {
    let Some(&root) = model.roots.get(krate) else { return Vec::new() };
    let mut impls: HashMap<Def, Vec<&ItemImpl>> = HashMap::new();
    for (module, item) in &model.impls {
        if let Some(def) = type_path(&item.self_ty).and_then(|path| model.resolve(*module, &path)) {
            impls.entry(def).or_default().push(item);
        }
    }
    let mut lister = Lister {
        model,
        krate,
        impls,
        known: HashMap::new(),
        lines: Vec::new(),
        around: Vec::new(),
    };
    lister.module(root, krate);
    lister.lines.sort();
    lister.lines.dedup();
    lister.lines
}

struct Lister<'a> {
    model: &'a Model,
    krate: &'a str,
    impls: HashMap<Def, Vec<&'a ItemImpl>>,
    /// The path of each listed item.
    known: HashMap<Def, String>,
    lines: Vec<String>,
    /// The modules that are currently being listed.
    around: Vec<usize>,
}

impl<'a> Lister<'a> {
    fn say(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    fn module(&mut self, id: usize, path: &str) {
        self.say(format!("pub mod {path}"));
        if self.around.contains(&id) || path.ends_with("::__private") {
            return;
        }
        self.around.push(id);
        let model = self.model;
        let module = &model.modules[id];
        for (name, item) in &module.items {
            if is_public(item) {
                self.item(&Def::Item(id, name.clone()), &format!("{path}::{name}"));
            }
        }
        for export in module.exports.iter().filter(|export| export.public) {
            let path = format!("{path}::{}", export.name);
            match model.resolve(id, &export.path) {
                Some(Def::Module(inner)) if self.is_apart(inner) => {
                    self.say(format!("pub use {path} = {}", export.path.join("::")));
                }
                Some(Def::Module(inner)) => self.module(inner, &path),
                Some(def) => self.item(&def, &path),
                None => self.say(format!("pub use {path} = {}", export.path.join("::"))),
            }
        }
        for (name, child) in module.children.iter().filter(|(_, child)| child.public) {
            self.module(child.module, &format!("{path}::{name}"));
        }
        self.around.pop();
    }

    /// Whether a module belongs to the crate with its own snapshot.
    fn is_apart(&self, module: usize) -> bool {
        let krate = &self.model.modules[module].krate;
        krate == APART && self.krate != APART
    }

    fn item(&mut self, def: &Def, path: &str) {
        let Def::Item(module, name) = def else { return };
        let model = self.model;
        if self.is_apart(*module) {
            return self.say(format!("pub use {path} = {APART}::{name}"));
        }
        if let Some(known) = self.known.get(def) {
            let line = format!("pub use {path} = {known}");
            return self.say(line);
        }
        self.known.insert(def.clone(), path.to_owned());
        match model.modules[*module].items.get(name) {
            Some(item) => self.definition(item, path),
            None => self.say(format!("pub {path} (by a macro)")),
        }
        let calls = model.modules[*module].calls.iter();
        for call in calls.filter(|call| mentions(&call.mac.tokens, name)) {
            self.macro_functions(&call.mac, path);
        }
        for item in self.impls.get(def).cloned().unwrap_or_default() {
            self.implementation(item, path);
        }
    }

    /// Lists the functions that a macro generates.
    fn macro_functions(&mut self, call: &syn::Macro, path: &str) {
        let name = call.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        let mut functions = Vec::new();
        if let Some(rules) = self.model.macros.get(&name) {
            public_functions(rules, &mut functions);
        }
        for function in functions {
            self.say(format!("pub fn {path}::{function} (by {name}!)"));
        }
    }

    fn definition(&mut self, item: &Item, path: &str) {
        let open = match attrs(item).iter().any(|attr| attr.path().is_ident("non_exhaustive")) {
            true => "#[non_exhaustive] ",
            false => "",
        };
        self.derives(item, path);
        match item {
            Item::Struct(item) => {
                self.say(format!("{open}pub struct {path}{}", code(&item.generics)));
                self.fields(&item.fields, path);
            }
            Item::Enum(item) => {
                self.say(format!("{open}pub enum {path}{}", code(&item.generics)));
                for variant in &item.variants {
                    let (name, fields) = (&variant.ident, code(&variant.fields));
                    self.say(format!("{path}::{name}{fields}"));
                }
            }
            Item::Trait(item) => self.trait_(item, path),
            Item::Fn(item) => self.function(&item.sig, path, "pub "),
            Item::Const(item) => self.say(format!("pub const {path}: {}", code(&item.ty))),
            Item::Static(item) => self.say(format!("pub static {path}: {}", code(&item.ty))),
            Item::Type(item) => {
                self.say(format!("pub type {path}{} = {}", code(&item.generics), code(&item.ty)));
            }
            _ => {}
        }
    }

    fn derives(&mut self, item: &Item, path: &str) {
        for attr in attrs(item).iter().filter(|attr| attr.path().is_ident("derive")) {
            let Ok(list) = attr.meta.require_list() else { continue };
            for name in list.tokens.to_string().split(',') {
                let name = name.replace(' ', "");
                if !name.is_empty() {
                    self.say(format!("impl {name} for {path}"));
                }
            }
        }
    }

    fn fields(&mut self, fields: &Fields, path: &str) {
        for (place, field) in fields.iter().enumerate() {
            if matches!(field.vis, Visibility::Public(_)) {
                let name =
                    field.ident.as_ref().map_or_else(|| place.to_string(), ToString::to_string);
                self.say(format!("pub {path}::{name}: {}", code(&field.ty)));
            }
        }
    }

    /// Lists a function under its path: `pub fn a::b(c: u8) -> D`.
    fn function(&mut self, signature: &syn::Signature, path: &str, vis: &str) {
        let written = code(signature);
        let named = format!("fn {}", signature.ident);
        self.say(format!("{vis}{}", written.replacen(&named, &format!("fn {path}"), 1)));
    }

    fn trait_(&mut self, item: &syn::ItemTrait, path: &str) {
        let supers = code(&item.supertraits);
        let supers = if supers.is_empty() { supers } else { format!(": {supers}") };
        self.say(format!("pub trait {path}{}{supers}", code(&item.generics)));
        for member in &item.items {
            match member {
                TraitItem::Fn(method) => {
                    let vis = if method.default.is_some() { "provided " } else { "required " };
                    self.function(&method.sig, &format!("{path}::{}", method.sig.ident), vis);
                }
                TraitItem::Type(kind) => self.say(format!("type {path}::{}", kind.ident)),
                TraitItem::Const(constant) => {
                    self.say(format!("const {path}::{}: {}", constant.ident, code(&constant.ty)));
                }
                _ => {}
            }
        }
    }

    fn implementation(&mut self, item: &ItemImpl, path: &str) {
        if is_for_tests(&item.attrs) {
            return;
        }
        if let Some((name, _)) = &item.trait_ {
            return self.say(format!("impl {} for {path}", code(name)));
        }
        for member in &item.items {
            match member {
                ImplItem::Fn(method)
                    if matches!(method.vis, Visibility::Public(_))
                        && !is_for_tests(&method.attrs) =>
                {
                    self.function(&method.sig, &format!("{path}::{}", method.sig.ident), "pub ");
                }
                ImplItem::Const(constant) if matches!(constant.vis, Visibility::Public(_)) => {
                    self.say(format!(
                        "pub const {path}::{}: {}",
                        constant.ident,
                        code(&constant.ty)
                    ));
                }
                ImplItem::Macro(call) => self.macro_functions(&call.mac, path),
                _ => {}
            }
        }
    }
}

/// Collects the names after `pub fn` in the rules of a macro; a name from the call is shown as
/// `$name`.
fn public_functions(tokens: &TokenStream, found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        if let TokenTree::Group(group) = token {
            public_functions(&group.stream(), found);
        }
        let word = |place: usize| tokens.get(place).map(ToString::to_string).unwrap_or_default();
        if word(at) != "pub" {
            continue;
        }
        let function = (at + 1..at + 4).find(|&place| word(place) == "fn");
        if let Some(function) = function {
            let name = word(function + 1);
            found.push(if name == "$" { name + &word(function + 2) } else { name });
        }
    }
}

fn is_public(item: &Item) -> bool {
    let vis = match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        _ => return false,
    };
    matches!(vis, Visibility::Public(_))
}

fn type_path(kind: &Type) -> Option<Vec<String>> {
    match kind {
        Type::Path(path) if path.qself.is_none() => {
            Some(path.path.segments.iter().map(|segment| segment.ident.to_string()).collect())
        }
        _ => None,
    }
}
