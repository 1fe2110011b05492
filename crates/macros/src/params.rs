//! The parameters of a handler: extractors as they are, and arguments gathered into one struct.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, FnArg, Ident, Pat, PatIdent, PatType, Token, Type, punctuated::Punctuated,
    spanned::Spanned,
};

use crate::{errors::Errors, field::Field, span::at};

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
    Args { name: Box<PatIdent>, ty: Box<Type> },
    /// All arguments, as the struct made from [`Params::fields`].
    Fields,
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
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Ident> {
        let args = self.passed.iter().filter_map(|passed| match passed {
            Passed::Args { name, .. } => Some(&name.ident),
            Passed::Extractor(_) | Passed::Fields => None,
        });
        args.chain(self.fields.iter().map(Field::parameter))
    }

    /// The struct of the arguments, if there is one. Its name should not be in the author's way.
    pub(crate) fn arguments_type(&self) -> Option<TokenStream> {
        if self.fields.is_empty() {
            return None;
        }
        let fields = self.fields.iter().map(Field::definition);
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
                let fields = self.fields.iter().map(Field::pattern);
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
        let ty = param.ty.clone();
        if name.ident == "args" {
            if let Some(attribute) = param.attrs.first() {
                return Err(error(
                    attribute,
                    "`args` is all arguments; put this on the fields of its type",
                ));
            }
            self.passed.push(Passed::Args { name: Box::new(name), ty });
            return Ok(());
        }
        if self.fields.is_empty() {
            self.passed.push(Passed::Fields);
        }
        self.fields.push(Field::read(param, name, *ty)?);
        Ok(())
    }

    /// Arguments are read once, into one type.
    fn refuse_two_sources(&self, errors: &mut Errors) {
        let sources = self.passed.iter().filter_map(|passed| match passed {
            Passed::Extractor(param) => (last_name(&param.ty)? == "Args").then(|| quote!(#param)),
            Passed::Args { name, .. } => Some(quote!(#name)),
            Passed::Fields => Some(self.fields.first()?.parameter().to_token_stream()),
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
