//! A parameter that is one argument: a field of the arguments struct.

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, GenericArgument, Ident, LitStr, PatIdent, PatType, PathArguments, Token, Type,
    ext::IdentExt, meta::ParseNestedMeta,
};

use crate::{description, span::at};

/// A parameter that is one argument.
pub(crate) struct Field {
    /// Attributes of the struct field: doc comments, `#[serde]`, `#[schemars]`, `#[cfg]`.
    on_field: Vec<Attribute>,
    /// Name in `#[header("…")]`.
    pub(crate) header: Option<LitStr>,
    name: PatIdent,
    ty: Type,
}

impl Field {
    /// Parses the attributes of a parameter.
    pub(crate) fn read(param: &PatType, name: PatIdent, ty: Type) -> syn::Result<Self> {
        let mut field = Self { on_field: Vec::new(), header: None, name, ty };
        for attribute in &param.attrs {
            let path = attribute.path();
            let is = |names: &[&str]| names.iter().any(|name| path.is_ident(name));
            if is(&["cfg", "doc", "serde", "schemars"]) {
                field.on_field.push(attribute.clone());
            } else if is(&["allow", "deny", "expect", "forbid", "warn"]) {
                // Lint attributes stay on the parameter of the function.
            } else if is(&["header"]) {
                let wrong = |_| syn::Error::new_spanned(attribute, "write `#[header(\"Name\")]`");
                field.header = Some(attribute.parse_args().map_err(wrong)?);
            } else {
                let message = "an argument accepts only doc comments, `#[serde]`, `#[schemars]`, `#[header]`, \
                               `#[extract]`, `#[cfg]` and lints";
                return Err(syn::Error::new_spanned(path, message));
            }
        }
        Ok(field)
    }

    /// Returns the name of the parameter.
    pub(crate) fn parameter(&self) -> &Ident {
        &self.name.ident
    }

    /// Returns the struct field with another type, which depends on the author's type.
    pub(crate) fn chosen(&self, ty: &TokenStream) -> TokenStream {
        let (on_field, name) = (&self.on_field, field_name(&self.name.ident));
        quote!(#(#on_field)* #name: #ty)
    }

    /// Returns the struct field.
    pub(crate) fn definition(&self) -> TokenStream {
        let Self { on_field, ty, .. } = self;
        let name = field_name(&self.name.ident);
        let header = self.header.as_ref().map(|header| {
            let may_be_left_out = option_of(ty).map(|ty| self.left_out_but_not_null(ty));
            quote!(#may_be_left_out #[schemars(extend("x-mcp-header" = #header))])
        });
        quote!(#(#on_field)* #header #name: #ty)
    }

    /// Returns the field in the pattern that destructures the struct.
    pub(crate) fn pattern(&self, local: &Ident) -> TokenStream {
        let field = field_name(&self.name.ident);
        let conditions = self.conditions();
        quote!(#(#conditions)* #field: #local)
    }

    /// Returns the documentation line of the argument, if it has a doc comment.
    pub(crate) fn documentation(&self) -> Option<String> {
        let text = description::text_of(&self.on_field)?;
        Some(format!("- `{}`: {}", self.name.ident.unraw(), text.replace('\n', "\n  ")))
    }

    /// Returns the `#[cfg]` attributes of the argument.
    pub(crate) fn conditions(&self) -> impl Iterator<Item = &Attribute> {
        self.on_field.iter().filter(|attribute| attribute.path().is_ident("cfg"))
    }

    /// Returns the wire name of the argument. Returns `None` if serde determines it.
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

    /// An argument with a header must not be `null`, which the schema of an `Option` allows. The
    /// schema is therefore that of the inner type, and the argument is optional without a default.
    /// Attributes of the author take precedence.
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

    /// Visits the keys in all attributes of a name. Ignores syntax errors, which the owner of the
    /// attribute reports.
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

/// Returns the name of the field. Leading underscores, which silence the lint for unused
/// parameters, are not part of the wire name.
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

/// Returns the `T` of an `Option<T>`.
fn option_of(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}
