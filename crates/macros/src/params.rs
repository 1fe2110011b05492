//! The parameters of a handler: extractors as they are, and arguments gathered into one struct.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, FnArg, Ident, LitStr, Pat, PatIdent, PatType, Token, Type, ext::IdentExt,
    punctuated::Punctuated, spanned::Spanned,
};

use crate::{errors::Errors, function::at};

/// Types that are made from the call, by name. Others are marked with `#[extract]`.
const EXTRACTORS: [&str; 8] =
    ["Args", "Cx", "Durable", "Partial", "Principal", "RawParams", "State", "Task"];

/// All parameters, in the order in which they are passed on. The arguments are passed on as one, in
/// the place of the first.
#[derive(Default)]
pub(crate) struct Params {
    passed: Vec<Passed>,
    fields: Vec<Field>,
}

enum Passed {
    /// As it was written.
    Extractor(PatType),
    /// All arguments, as a type of the author's.
    Args { name: PatIdent, ty: Type },
    /// All arguments, as the struct made from [`Params::fields`].
    Fields,
}

/// A parameter that is one argument.
pub(crate) struct Field {
    /// For the field of the struct: doc comments, `#[serde]`, `#[schemars]`, `#[cfg]`.
    on_field: Vec<Attribute>,
    /// For the name in the function: `#[cfg]`, lints.
    on_name: Vec<Attribute>,
    pub(crate) header: Option<LitStr>,
    name: PatIdent,
    ty: Type,
}

impl Params {
    pub(crate) fn read(inputs: &Punctuated<FnArg, Token![,]>, errors: &mut Errors) -> Self {
        let mut params = Self::default();
        for input in inputs {
            // A `self` has been refused already.
            if let FnArg::Typed(param) = input
                && let Err(error) = params.take(param)
            {
                errors.add(error);
            }
        }
        params.refuse_two_sources(errors);
        params
    }

    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter()
    }

    /// All parameters that clients fill.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = (Span, String)> {
        let args = self.passed.iter().filter_map(|passed| match passed {
            Passed::Args { name, .. } => Some(&name.ident),
            Passed::Extractor(_) | Passed::Fields => None,
        });
        args.chain(self.fields.iter().map(|field| &field.name.ident))
            .map(|name| (name.span(), name.unraw().to_string()))
    }

    /// The struct of the arguments, if there is one. Its name should not be in the author's way.
    pub(crate) fn arguments_type(&self) -> Option<TokenStream> {
        if self.fields.is_empty() {
            return None;
        }
        let fields = self.fields.iter().map(|Field { on_field, header, name, ty, .. }| {
            let name = field_name(&name.ident);
            let header =
                header.as_ref().map(|header| quote!(#[schemars(extend("x-mcp-header" = #header))]));
            quote!(#(#on_field)* #header #name: #ty)
        });
        Some(quote! {
            #[derive(::outlive::__private::serde::Deserialize, ::outlive::__private::schemars::JsonSchema)]
            #[serde(crate = "::outlive::__private::serde")]
            #[schemars(crate = "::outlive::__private::schemars")]
            struct __Arguments { #(#fields),* }
        })
    }

    /// The parameters of the function that runs.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = TokenStream> {
        self.passed.iter().map(|passed| match passed {
            Passed::Extractor(param) => quote!(#param),
            Passed::Args { name, .. } => {
                let ty = passed.ty();
                quote_spanned!(at(name.span())=> ::outlive::server::Args(#name): #ty)
            }
            Passed::Fields => {
                let ty = passed.ty();
                let fields = self.fields.iter().map(|Field { on_name, name, .. }| {
                    let field = field_name(&name.ident);
                    quote!(#(#on_name)* #field: #name)
                });
                // Never `Struct { name }`: for an unused name, the compiler would propose `name: _`.
                quote! {
                    #[allow(non_shorthand_field_patterns)]
                    ::outlive::server::Args(__Arguments { #(#fields),* }): #ty
                }
            }
        })
    }

    /// The types of these parameters.
    pub(crate) fn types(&self) -> impl Iterator<Item = TokenStream> {
        self.passed.iter().map(Passed::ty)
    }

    fn take(&mut self, param: &PatType) -> syn::Result<()> {
        let marked = param.attrs.iter().any(|attribute| attribute.path().is_ident("extract"));
        if marked || is_extractor(&param.ty) {
            self.passed.push(Passed::Extractor(extractor(param)?));
            return Ok(());
        }
        check_type(&param.ty)?;
        let name = plain_name(&param.pat)?;
        let ty = (*param.ty).clone();
        if name.ident == "args" {
            if let Some(attribute) = param.attrs.first() {
                return Err(error(
                    attribute,
                    "`args` is all arguments; put this on the fields of its type",
                ));
            }
            self.passed.push(Passed::Args { name, ty });
            return Ok(());
        }
        if self.fields.is_empty() {
            self.passed.push(Passed::Fields);
        }
        self.fields.push(Field::read(param, name, ty)?);
        Ok(())
    }

    /// Arguments are read once, into one type.
    fn refuse_two_sources(&self, errors: &mut Errors) {
        let sources = self.passed.iter().filter_map(|passed| match passed {
            Passed::Extractor(param) => (last_name(&param.ty)? == "Args").then(|| param.span()),
            Passed::Args { name, .. } => Some(name.span()),
            Passed::Fields => Some(self.fields.first()?.span()),
        });
        for second in sources.skip(1) {
            errors.push(
                second,
                "the arguments are taken already; take all of them as one type, or each by its own name",
            );
        }
    }
}

impl Passed {
    fn ty(&self) -> TokenStream {
        match self {
            Self::Extractor(param) => param.ty.to_token_stream(),
            Self::Args { ty, .. } => quote_spanned!(at(ty.span())=> ::outlive::server::Args<#ty>),
            Self::Fields => quote!(::outlive::server::Args<__Arguments>),
        }
    }
}

impl Field {
    fn read(param: &PatType, name: PatIdent, ty: Type) -> syn::Result<Self> {
        let mut field = Self { on_field: Vec::new(), on_name: Vec::new(), header: None, name, ty };
        for attribute in &param.attrs {
            let path = attribute.path();
            let is = |names: &[&str]| names.iter().any(|name| path.is_ident(name));
            if is(&["doc", "serde", "schemars"]) {
                field.on_field.push(attribute.clone());
            } else if is(&["cfg"]) {
                field.on_field.push(attribute.clone());
                field.on_name.push(attribute.clone());
            } else if is(&["allow", "deny", "expect", "forbid", "warn"]) {
                field.on_name.push(attribute.clone());
            } else if is(&["header"]) {
                let header = attribute.parse_args::<LitStr>();
                field.header =
                    Some(header.map_err(|_| error(attribute, "write `#[header(\"Name\")]`"))?);
            } else {
                let message = "on an argument there can be doc comments, `#[serde]`, `#[schemars]`, `#[header]`, \
                               `#[extract]`, `#[cfg]` and lints";
                return Err(error(path, message));
            }
        }
        Ok(field)
    }

    pub(crate) fn span(&self) -> Span {
        self.name.ident.span()
    }

    /// What clients call it; `None` if serde has the last word.
    pub(crate) fn name_for_clients(&self) -> Option<String> {
        let mut name = Some(field_name(&self.name.ident).unraw().to_string());
        for attribute in self.on_field.iter().filter(|attribute| attribute.path().is_ident("serde"))
        {
            // What cannot be parsed here, serde will complain about.
            let _ = attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("rename") && meta.input.peek(Token![=]) {
                    name = Some(meta.value()?.parse::<LitStr>()?.value());
                    return Ok(());
                }
                if ["alias", "flatten", "rename", "skip", "skip_deserializing"]
                    .iter()
                    .any(|key| meta.path.is_ident(key))
                {
                    name = None;
                }
                // Whatever follows is of no interest.
                while !meta.input.is_empty() && !meta.input.peek(Token![,]) {
                    meta.input.parse::<proc_macro2::TokenTree>()?;
                }
                Ok(())
            });
        }
        name
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

/// What an extractor is passed on as. There is nothing to describe about it, so a doc comment is
/// for whoever reads the function.
fn extractor(param: &PatType) -> syn::Result<PatType> {
    let mut param = param.clone();
    param
        .attrs
        .retain(|attribute| !["doc", "extract"].iter().any(|name| attribute.path().is_ident(name)));
    let misplaced = |attribute: &&Attribute| {
        ["header", "schemars", "serde"].iter().any(|name| attribute.path().is_ident(name))
    };
    match param.attrs.iter().find(misplaced) {
        Some(attribute) => Err(error(
            attribute,
            "this parameter is an extractor, not an argument; remove the attribute",
        )),
        None => Ok(param),
    }
}

fn is_extractor(ty: &Type) -> bool {
    last_name(ty).is_some_and(|name| EXTRACTORS.iter().any(|extractor| name == extractor))
}

/// The last name in the path of a type.
fn last_name(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|segment| &segment.ident),
        // Types that come out of a `macro_rules!` are in an invisible group.
        Type::Group(group) => last_name(&group.elem),
        Type::Paren(paren) => last_name(&paren.elem),
        _ => None,
    }
}

fn check_type(ty: &Type) -> syn::Result<()> {
    match ty {
        Type::Reference(_) => Err(error(
            ty,
            "arguments are owned; take a `String` for a `&str`, a `Vec<T>` for a `&[T]`",
        )),
        Type::ImplTrait(_) => Err(error(ty, "handlers cannot be generic; name the type")),
        Type::Group(group) => check_type(&group.elem),
        _ => Ok(()),
    }
}

fn plain_name(pattern: &Pat) -> syn::Result<PatIdent> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Ok(name.clone()),
        other => Err(error(
            other,
            "an argument needs a plain name, which clients use for it; take the value apart in the body",
        )),
    }
}

fn error(place: &impl ToTokens, message: &str) -> syn::Error {
    syn::Error::new_spanned(place, message)
}
