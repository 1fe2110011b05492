//! Extracts the facts of one file with `syn`.

use syn::visit::{self, Visit};
use syn::{
    Attribute, Block, Fields, ImplItem, Item, Signature, TraitItem, Type, UseTree, Visibility,
};

use super::facts::{Facts, Function, Mention, Place, PublicName, Scope, Trait, Use};
use super::tokens;

/// Parses one file.
///
/// # Errors
///
/// Returns an error if the text is not Rust.
pub(crate) fn read(text: &str) -> syn::Result<Facts> {
    let file = syn::parse_file(text)?;
    let mut reader = Reader { facts: Facts::default(), scope: 0, private: false };
    reader.facts.scopes.push(Scope::default());
    reader.visit_file(&file);
    Ok(reader.facts)
}

/// Whether an attribute excludes its item from the product.
pub(crate) fn is_for_tests(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        let path = attr.path();
        if path.segments.last().is_some_and(|last| last.ident == "test") {
            return true;
        }
        let Ok(list) = attr.meta.require_list() else { return false };
        let text = list.tokens.to_string().replace(' ', "");
        path.is_ident("cfg")
            && (matches!(text.as_str(), "test" | "doctest") || text.starts_with("all(test,"))
    })
}

struct Reader {
    facts: Facts,
    /// The current module of the file.
    scope: usize,
    /// Whether the current module is `__private`.
    private: bool,
}

impl Reader {
    fn scope(&mut self) -> &mut Scope {
        &mut self.facts.scopes[self.scope]
    }

    fn function(&mut self, signature: &Signature, body: &Block) {
        let braces = body.brace_token.span;
        self.facts.functions.push(Function {
            name: signature.ident.to_string(),
            open: braces.open().start().line,
            close: braces.close().start().line,
        });
    }

    fn public(
        &mut self,
        vis: &Visibility,
        ident: &syn::Ident,
        of: Option<&str>,
        attrs: &[Attribute],
    ) {
        if matches!(vis, Visibility::Public(_)) {
            self.named(ident, of, attrs);
        }
    }

    fn named(&mut self, ident: &syn::Ident, of: Option<&str>, attrs: &[Attribute]) {
        let (line, name) = (ident.span().start().line, ident.to_string());
        if is_hidden(attrs) && !self.private {
            self.facts.hidden.push(Place { line, name: name.clone() });
        }
        self.facts.names.push(PublicName { line, name, of: of.map(str::to_owned) });
    }

    fn fields(&mut self, fields: &Fields, of: &str) {
        for field in fields {
            if let Some(ident) = &field.ident {
                self.public(&field.vis, ident, Some(of), &field.attrs);
            }
        }
    }

    fn define(&mut self, ident: &syn::Ident) {
        let name = ident.to_string();
        self.scope().items.push(name);
    }

    /// Records the name of an item and the names of its members.
    fn item(&mut self, item: &Item) {
        let attrs = attrs(item);
        match item {
            Item::Struct(item) => {
                self.define(&item.ident);
                self.public(&item.vis, &item.ident, None, attrs);
                self.fields(&item.fields, &item.ident.to_string());
            }
            Item::Enum(item) => {
                self.define(&item.ident);
                self.public(&item.vis, &item.ident, None, attrs);
                for variant in &item.variants {
                    let of = item.ident.to_string();
                    self.public(&item.vis, &variant.ident, Some(&of), &variant.attrs);
                }
            }
            Item::Trait(item) => self.trait_(item),
            Item::Impl(item) if item.trait_.is_none() => self.members(item),
            Item::Fn(item) => {
                self.define(&item.sig.ident);
                self.public(&item.vis, &item.sig.ident, None, attrs);
            }
            Item::Macro(item) => {
                if let Some(ident) = &item.ident {
                    self.define(ident);
                }
            }
            item => {
                if let Some((vis, ident)) = plain(item) {
                    self.define(ident);
                    self.public(vis, ident, None, attrs);
                }
            }
        }
    }

    fn trait_(&mut self, item: &syn::ItemTrait) {
        self.define(&item.ident);
        self.public(&item.vis, &item.ident, None, &item.attrs);
        let name = item.ident.to_string();
        let mut methods = 0;
        for member in &item.items {
            if let TraitItem::Fn(method) = member {
                methods += 1;
                self.public(&item.vis, &method.sig.ident, Some(&name), &method.attrs);
            }
        }
        let line = item.ident.span().start().line;
        self.facts.traits.push(Trait { line, name, methods });
    }

    fn members(&mut self, item: &syn::ItemImpl) {
        let Some(name) = type_name(&item.self_ty) else { return };
        for member in &item.items {
            match member {
                ImplItem::Fn(method) if !is_for_tests(&method.attrs) => {
                    self.public(&method.vis, &method.sig.ident, Some(&name), &method.attrs)
                }
                ImplItem::Const(constant) => {
                    self.public(&constant.vis, &constant.ident, Some(&name), &constant.attrs)
                }
                _ => {}
            }
        }
    }

    fn module(&mut self, item: &syn::ItemMod) {
        let name = item.ident.to_string();
        self.public(
            &item.vis,
            &item.ident,
            None,
            if name == "__private" { &[] } else { &item.attrs },
        );
        let Some((_, items)) = &item.content else {
            self.scope().files.push(name);
            return;
        };
        let (outer, was_private) = (self.scope, self.private);
        let mut path = self.facts.scopes[outer].path.clone();
        self.private |= name == "__private";
        path.push(name);
        self.facts.scopes.push(Scope { path, ..Scope::default() });
        self.scope = self.facts.scopes.len() - 1;
        for item in items {
            self.visit_item(item);
        }
        (self.scope, self.private) = (outer, was_private);
    }

    fn use_tree(&mut self, tree: &UseTree, prefix: &mut Vec<String>, exported: bool) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.use_tree(&path.tree, prefix, exported);
                prefix.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.use_tree(tree, prefix, exported);
                }
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.used(prefix.last().cloned(), prefix.clone(), &name.ident, exported);
            }
            UseTree::Name(name) => {
                let alias = Some(name.ident.to_string());
                self.used(alias, joined(prefix, &name.ident), &name.ident, exported);
            }
            UseTree::Rename(name) => {
                let of_self = name.ident == "self";
                let path = if of_self { prefix.clone() } else { joined(prefix, &name.ident) };
                self.used(Some(name.rename.to_string()), path, &name.ident, exported);
            }
            UseTree::Glob(glob) => {
                let line = glob.star_token.span.start().line;
                let path = prefix.clone();
                self.scope().uses.push(Use { alias: None, path, line, exported });
            }
        }
    }

    fn used(&mut self, alias: Option<String>, path: Vec<String>, at: &syn::Ident, exported: bool) {
        let line = at.span().start().line;
        self.scope().uses.push(Use { alias, path, line, exported });
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attrs(item)) {
            return;
        }
        match item {
            Item::Mod(item) => return self.module(item),
            Item::Use(item) => {
                let exported = !matches!(item.vis, Visibility::Inherited);
                return self.use_tree(&item.tree, &mut Vec::new(), exported);
            }
            Item::ExternCrate(_) => return,
            item => self.item(item),
        }
        visit::visit_item(self, item);
    }

    fn visit_file(&mut self, file: &'ast syn::File) {
        for item in &file.items {
            if !is_for_tests(attrs(item)) {
                self.facts.logic.extend(logic(item));
            }
            self.visit_item(item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_for_tests(&item.attrs) {
            return;
        }
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let (Some(first), None) = (path.segments.first(), &path.leading_colon) {
            let name = first.ident.to_string();
            self.scope().mentioned.insert(name);
        }
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            let line = path.segments[0].ident.span().start().line;
            let path = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            self.scope().paths.push(Mention { path, line });
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        let scope = &mut self.facts.scopes[self.scope];
        tokens::paths(item.tokens.clone(), scope);
        visit::visit_macro(self, item);
    }

    fn visit_type_trait_object(&mut self, object: &'ast syn::TypeTraitObject) {
        let is_any = |bound: &syn::TypeParamBound| {
            matches!(bound, syn::TypeParamBound::Trait(bound)
                if bound.path.segments.last().is_some_and(|last| last.ident == "Any"))
        };
        if object.bounds.iter().any(is_any) {
            self.facts
                .any_objects
                .extend(object.dyn_token.as_ref().map(|token| token.span.start().line));
        }
        visit::visit_type_trait_object(self, object);
    }

    // Paths in attributes and in `pub(in …)` are not imports.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// Returns the items of a module root other than `mod` and `use`. Procedural macros are exempt,
/// because the compiler requires them there.
fn logic(item: &Item) -> Vec<Place> {
    let at = |ident: &syn::Ident, kind: &str| {
        vec![Place { line: ident.span().start().line, name: format!("{kind}{ident}") }]
    };
    match item {
        Item::Use(_) | Item::ExternCrate(_) => Vec::new(),
        Item::Mod(item) => {
            let items = item.content.iter().flat_map(|(_, items)| items);
            items.filter(|item| !is_for_tests(attrs(item))).flat_map(logic).collect()
        }
        Item::Fn(item) if item.attrs.iter().any(is_proc_macro) => Vec::new(),
        Item::Fn(item) => at(&item.sig.ident, "fn "),
        Item::Impl(item) => {
            let line = item.impl_token.span.start().line;
            let of = type_name(&item.self_ty).unwrap_or_default();
            vec![Place { line, name: format!("impl {of}") }]
        }
        Item::Struct(item) => at(&item.ident, "struct "),
        Item::Enum(item) => at(&item.ident, "enum "),
        Item::Trait(item) => at(&item.ident, "trait "),
        Item::Macro(item) => {
            let last = item.mac.path.segments.last();
            last.map_or_else(Vec::new, |last| at(&last.ident, "macro "))
        }
        item => plain(item).map_or_else(Vec::new, |(_, ident)| at(ident, "")),
    }
}

fn is_proc_macro(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|last| last.ident.to_string().starts_with("proc_macro"))
}

fn is_hidden(attrs: &[Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("doc")
            && attr.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "hidden")
    })
}

/// The visibility and name of an item without members.
fn plain(item: &Item) -> Option<(&Visibility, &syn::Ident)> {
    Some(match item {
        Item::Const(item) => (&item.vis, &item.ident),
        Item::Static(item) => (&item.vis, &item.ident),
        Item::TraitAlias(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        Item::Union(item) => (&item.vis, &item.ident),
        _ => return None,
    })
}

fn type_name(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

fn joined(prefix: &[String], last: &syn::Ident) -> Vec<String> {
    prefix.iter().cloned().chain([last.to_string()]).collect()
}

/// The attributes of any item.
pub(crate) fn attrs(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn facts_exclude_tests() {
        let facts = read(
            "struct A;\n#[cfg(test)]\nmod tests { use crate::b::C; }\n\
             impl A { #[cfg(test)] fn d() { crate::e::f(); } }\n",
        )
        .unwrap();
        assert_eq!(facts.scopes.len(), 1);
        assert_eq!(facts.scopes[0].items, ["A"]);
        assert!(facts.scopes[0].paths.is_empty());
    }

    #[test]
    fn use_trees_are_split_into_leaves() {
        let facts =
            read("pub use a::{self, b::{C as D, E}};\nfn f() { use g::*; h::i(vec![j::K]); }\n")
                .unwrap();
        let shown: Vec<String> = facts.scopes[0]
            .uses
            .iter()
            .map(|used| {
                let alias = used.alias.as_deref().unwrap_or("*");
                format!(
                    "{}{} as {alias}",
                    if used.exported { "pub " } else { "" },
                    used.path.join("::")
                )
            })
            .collect();
        assert_eq!(shown, ["pub a as a", "pub a::b::C as D", "pub a::b::E as E", "g as *"]);
        let paths: Vec<String> =
            facts.scopes[0].paths.iter().map(|found| found.path.join("::")).collect();
        assert_eq!(paths, ["h::i", "j::K"]);
    }

    #[test]
    fn public_members_have_their_type() {
        let facts = read(
            "pub struct A { pub b: u8, c: u8 }\nimpl A { pub fn d() {} fn e() {} }\n\
             pub enum F { G }\npub trait H { fn i(); }\nenum J { K }\npub(crate) fn l() {}\n",
        )
        .unwrap();
        let names: Vec<String> = facts
            .names
            .iter()
            .map(|name| match &name.of {
                Some(of) => format!("{of}::{}", name.name),
                None => name.name.clone(),
            })
            .collect();
        assert_eq!(names, ["A", "A::b", "A::d", "F", "F::G", "H", "H::i"]);
    }

    #[test]
    fn hidden_items_and_dyn_any_are_found() {
        let facts = read(
            "#[doc(hidden)]\npub fn a() {}\n#[doc(hidden)]\npub mod __private { #[doc(hidden)] pub fn b() {} }\n\
             struct C(Box<dyn std::any::Any + Send>);\n",
        )
        .unwrap();
        assert_eq!(facts.hidden.len(), 1);
        assert_eq!(facts.hidden[0].name, "a");
        assert_eq!(facts.any_objects, [5]);
    }
}
