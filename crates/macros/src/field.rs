//! A parameter that is one argument: a field of the struct that all arguments are read into.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, GenericArgument, Ident, LitStr, PatIdent, PatType, PathArguments, Token, Type,
    ext::IdentExt, meta::ParseNestedMeta,
};

use crate::{description, span::at};

/// A parameter that is one argument.
pub(crate) struct Field {
    /// For the field of the struct: doc comments, `#[serde]`, `#[schemars]`, `#[cfg]`.
    on_field: Vec<Attribute>,
    /// The name in `#[header("…")]`.
    pub(crate) header: Option<LitStr>,
    name: PatIdent,
    ty: Type,
}

impl Field {
    /// Reads the attributes of a parameter.
    pub(crate) fn read(param: &PatType, name: PatIdent, ty: Type) -> syn::Result<Self> {
        let mut field = Self { on_field: Vec::new(), header: None, name, ty };
        for attribute in &param.attrs {
            let path = attribute.path();
            let is = |names: &[&str]| names.iter().any(|name| path.is_ident(name));
            if is(&["cfg", "doc", "serde", "schemars"]) {
                field.on_field.push(attribute.clone());
            } else if is(&["allow", "deny", "expect", "forbid", "warn"]) {
                // They are about the name in the function.
            } else if is(&["header"]) {
                let wrong = |_| syn::Error::new_spanned(attribute, "write `#[header(\"Name\")]`");
                field.header = Some(attribute.parse_args().map_err(wrong)?);
            } else {
                let message = "on an argument there can be doc comments, `#[serde]`, `#[schemars]`, `#[header]`, \
                               `#[extract]`, `#[cfg]` and lints";
                return Err(syn::Error::new_spanned(path, message));
            }
        }
        Ok(field)
    }

    /// The name of the parameter.
    pub(crate) fn parameter(&self) -> &Ident {
        &self.name.ident
    }

    /// The field in the struct, with a type that depends on the author's.
    pub(crate) fn chosen(&self, ty: &TokenStream) -> TokenStream {
        let (on_field, name) = (&self.on_field, field_name(&self.name.ident));
        quote!(#(#on_field)* #name: #ty)
    }

    /// The field in the struct.
    pub(crate) fn definition(&self) -> TokenStream {
        let Self { on_field, ty, .. } = self;
        let name = field_name(&self.name.ident);
        let header = self.header.as_ref().map(|header| {
            let may_be_left_out = option_of(ty).map(|ty| self.left_out_but_not_null(ty));
            quote!(#may_be_left_out #[schemars(extend("x-mcp-header" = #header))])
        });
        quote!(#(#on_field)* #header #name: #ty)
    }

    /// The field in the pattern that takes the struct apart.
    pub(crate) fn pattern(&self, local: &Ident) -> TokenStream {
        let field = field_name(&self.name.ident);
        let conditions = self.conditions();
        quote!(#(#conditions)* #field: #local)
    }

    /// A line about the argument, if its author has described it.
    pub(crate) fn documentation(&self) -> Option<String> {
        let text = description::text_of(&self.on_field)?;
        Some(format!("- `{}`: {}", self.name.ident.unraw(), text.replace('\n', "\n  ")))
    }

    /// The conditions under which there is such an argument.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Attribute> {
        self.on_field.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }

    /// What clients call it; `None` if serde has the last word.
    pub(crate) fn name_for_clients(&self) -> Option<String> {
        let mut name = Some(field_name(&self.name.ident).unraw().to_string());
        self.each_key("serde", |meta| {
            let is = |key: &str| meta.path.is_ident(key);
            if is("rename") && meta.input.peek(Token![=]) {
                name = Some(meta.value()?.parse::<LitStr>()?.value());
            } else if ["alias", "flatten", "rename", "skip", "skip_deserializing"]
                .into_iter()
                .any(is)
            {
                name = None;
            }
            Ok(())
        });
        name
    }

    /// The schema of an argument with a header must not allow `null`, as that of an `Option` does.
    /// So it is that of the inner type; then it has to be said that the argument may be left out,
    /// and that `null` is no default to be shown. What the author says about any of it counts.
    fn left_out_but_not_null(&self, inner: &Type) -> TokenStream {
        let schema = (!self.has_key("schemars", &["with", "schema_with"])).then(|| {
            let inner = inner.to_token_stream().to_string();
            quote!(#[schemars(with = #inner)])
        });
        let default = (!self.has_key("serde", &["default", "skip_serializing_if"])).then(
            || quote!(#[serde(default, skip_serializing_if = "::core::option::Option::is_none")]),
        );
        quote!(#schema #default)
    }

    fn has_key(&self, attribute: &str, keys: &[&str]) -> bool {
        let mut found = false;
        self.each_key(attribute, |meta| {
            found |= keys.iter().any(|key| meta.path.is_ident(key));
            Ok(())
        });
        found
    }

    /// Shows the keys in all attributes of a name. What cannot be parsed, its owner will refuse.
    fn each_key(
        &self,
        attribute: &str,
        mut see: impl FnMut(&ParseNestedMeta<'_>) -> syn::Result<()>,
    ) {
        for attribute in self.on_field.iter().filter(|known| known.path().is_ident(attribute)) {
            let _ = attribute.parse_nested_meta(|meta| {
                see(&meta)?;
                while !meta.input.is_empty() && !meta.input.peek(Token![,]) {
                    meta.input.parse::<TokenTree>()?;
                }
                Ok(())
            });
        }
    }
}

/// The name of the field. An underscore that keeps the compiler quiet about an unused parameter
/// does not change what clients send.
fn field_name(parameter: &Ident) -> Ident {
    let span = at(parameter.span());
    let text = parameter.unraw().to_string();
    let bare = match text.trim_start_matches('_') {
        bare if bare.starts_with(|first: char| !first.is_ascii_digit()) => bare,
        _ => &text,
    };
    let mut name = syn::parse_str::<Ident>(bare).unwrap_or_else(|_| Ident::new_raw(bare, span));
    name.set_span(span);
    name
}

/// The `T` of an `Option<T>`.
fn option_of(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}
