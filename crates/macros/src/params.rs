//! The parameters of a handler: extractors as they are, and arguments gathered into one struct.
//!
//! A type that is neither obviously an argument nor one of our extractors is decided by the compiler:
//! the code that is written here asks whether the type is an extractor.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Attribute, FnArg, Ident, Pat, PatIdent, PatType, PathArguments, Token, Type,
    punctuated::Punctuated, spanned::Spanned,
};

use crate::{errors::Errors, field::Field, span::at};

/// All parameters, in the order of the function.
#[derive(Default)]
pub(crate) struct Params(Vec<Param>);

enum Param {
    /// Made from the call.
    Extractor { written: Box<PatType> },
    /// All arguments, as a type of the author's.
    Args { name: Ident, ty: Box<Type> },
    /// One argument.
    Argument(Box<Field>),
    /// One argument, or made from the call, as its type decides.
    ByType { written: Box<PatType>, field: Box<Field> },
}

impl Params {
    pub(crate) fn read(inputs: &Punctuated<FnArg, Token![,]>, errors: &mut Errors) -> Self {
        let mut params = Self::default();
        for input in inputs {
            // A `self` has been refused already.
            if let FnArg::Typed(param) = input {
                match Param::read(param) {
                    Ok(param) => params.0.push(param),
                    Err(error) => errors.add(error),
                }
            }
        }
        params.refuse_two_sources(errors);
        params
    }

    /// The parameters that are one argument each.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().filter_map(|param| match param {
            Param::Argument(field) => Some(&**field),
            _ => None,
        })
    }

    /// All parameters that clients fill.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Ident> {
        self.0.iter().filter_map(|param| match param {
            Param::Args { name, .. } => Some(name),
            Param::Argument(field) => Some(field.parameter()),
            Param::Extractor { .. } | Param::ByType { .. } => None,
        })
    }

    /// Decides about the parameters whose type would: those that clients cannot fill are extractors.
    pub(crate) fn decide(&mut self, can_fill: impl Fn(&Field) -> bool) {
        for param in &mut self.0 {
            if let Param::ByType { written, field } = param
                && !can_fill(field)
            {
                *param = Param::Extractor { written: written.clone() };
            }
        }
    }

    /// The struct of the arguments, if there is one, and what decides about types.
    pub(crate) fn arguments_type(&self) -> Option<TokenStream> {
        if !self.has_struct() {
            return None;
        }
        let mut choices = TokenStream::new();
        let mut fields = Vec::new();
        for (index, param) in self.0.iter().enumerate() {
            match param {
                Param::Argument(field) => fields.push(field.definition()),
                Param::ByType { field, written } => {
                    let ty = &written.ty;
                    let choice = choice(index);
                    choices.extend(quote_spanned! {at(ty.span())=>
                        type #choice = ::outlive::__private::Choice<{ <::outlive::__private::ExtractorProbe<#ty>>::IS_EXTRACTOR }>;
                    });
                    fields.push(field.chosen(&chosen(index, ty, "Field")));
                }
                Param::Extractor { .. } | Param::Args { .. } => {}
            }
        }
        let transform = (!choices.is_empty()).then(|| {
            choices = quote! {
                #[allow(unused_imports)]
                use ::outlive::__private::NotExtractor as _;
                #choices
            };
            quote!(, transform = ::outlive::__private::without_extractors)
        });
        Some(quote! {
            #choices
            #[derive(::outlive::__private::serde::Deserialize, ::outlive::__private::schemars::JsonSchema)]
            #[serde(crate = "::outlive::__private::serde")]
            #[schemars(crate = "::outlive::__private::schemars" #transform)]
            struct __Arguments { #(#fields),* }
        })
    }

    /// The types of what the handler takes, and the patterns for them.
    pub(crate) fn handler(&self) -> (Vec<TokenStream>, Vec<TokenStream>) {
        let (mut types, mut patterns) = (Vec::new(), Vec::new());
        if self.has_struct() {
            let fields = self.0.iter().enumerate().filter_map(|(index, param)| match param {
                Param::Argument(field) | Param::ByType { field, .. } => {
                    Some(field.pattern(&local(index)))
                }
                Param::Extractor { .. } | Param::Args { .. } => None,
            });
            patterns.push(quote!(::outlive::server::Args(__Arguments { #(#fields),* })));
            types.push(quote!(::outlive::server::Args<__Arguments>));
        }
        for (index, param) in self.0.iter().enumerate() {
            let local = local(index);
            match param {
                Param::Extractor { written } => {
                    patterns.push(local.to_token_stream());
                    types.push(written.ty.to_token_stream());
                }
                Param::Args { ty, .. } => {
                    patterns.push(quote!(::outlive::server::Args(#local)));
                    types.push(quote_spanned!(at(ty.span())=> ::outlive::server::Args<#ty>));
                }
                Param::ByType { written, .. } => {
                    patterns.push(extracted(index).to_token_stream());
                    types.push(chosen(index, &written.ty, "Extracted"));
                }
                Param::Argument(_) => {}
            }
        }
        (types, patterns)
    }

    /// Expressions that the handler passes to the function.
    pub(crate) fn values(&self) -> impl Iterator<Item = TokenStream> {
        self.0.iter().enumerate().map(|(index, param)| {
            let local = local(index);
            match param {
                Param::Argument(field) => {
                    let conditions = field.conditions();
                    quote!(#(#conditions)* #local)
                }
                Param::ByType { written, .. } => {
                    let (ty, choice) = (&written.ty, choice(index));
                    let extracted = extracted(index);
                    quote_spanned! {at(ty.span())=>
                        <#choice as ::outlive::__private::Choose<#ty>>::take(#local, #extracted)
                    }
                }
                Param::Extractor { .. } | Param::Args { .. } => local.to_token_stream(),
            }
        })
    }

    /// Whether all of them are made from the call, so that the function itself is the handler.
    pub(crate) fn are_extractors(&self) -> bool {
        self.0.iter().all(|param| matches!(param, Param::Extractor { .. }))
    }

    /// Whether there is a struct of the arguments.
    fn has_struct(&self) -> bool {
        self.0.iter().any(|param| matches!(param, Param::Argument(_) | Param::ByType { .. }))
    }

    /// Arguments are read once, into one type.
    fn refuse_two_sources(&self, errors: &mut Errors) {
        let mut has_fields = false;
        let sources = self.0.iter().filter_map(|param| match param {
            Param::Extractor { written } => {
                (last_name(&written.ty)?.0 == "Args").then(|| quote!(#written))
            }
            Param::Args { name, .. } => Some(quote!(#name)),
            Param::Argument(field) if !std::mem::replace(&mut has_fields, true) => {
                Some(field.parameter().to_token_stream())
            }
            Param::Argument(_) | Param::ByType { .. } => None,
        });
        for second in sources.skip(1) {
            errors.push(
                second,
                "the arguments are taken already; take all of them as one type, or each by its own name",
            );
        }
    }
}

impl Param {
    fn read(param: &PatType) -> syn::Result<Self> {
        let ty = param.ty.clone();
        let marked = has(&param.attrs, &["extract"]);
        let source = if marked { Source::Call } else { source(&ty) };
        if source == Source::Call {
            return extractor(param);
        }
        check_type(&ty)?;
        if source == Source::Unknown && !matches!(*param.pat, Pat::Ident(_)) {
            // An argument has a plain name.
            return extractor(param);
        }
        let name = plain_name(&param.pat)?;
        if name.ident == "args" {
            if let Some(attribute) = param.attrs.first() {
                return Err(error(
                    attribute,
                    "`args` is all arguments; put this on the fields of its type",
                ));
            }
            return Ok(Self::Args { name: name.ident, ty });
        }
        let field = Box::new(Field::read(param, name, (*ty).clone())?);
        // Only an argument has these.
        let is_argument = has(&param.attrs, &["cfg", "header", "schemars", "serde"]);
        Ok(match source == Source::Client || is_argument {
            true => Self::Argument(field),
            false => Self::ByType { written: Box::new(param.clone()), field },
        })
    }
}

/// Where a value comes from, as far as the name of its type tells.
#[derive(PartialEq, Eq)]
enum Source {
    Call,
    Client,
    Unknown,
}

fn source(ty: &Type) -> Source {
    /// Our extractors. Another type of these names is imported under another name.
    const EXTRACTORS: [&str; 4] = ["Cx", "Durable", "Principal", "RawParams"];
    /// Our extractors that have a parameter. What it must be, the compiler says best.
    const GENERIC: [&str; 2] = ["Args", "State"];
    /// Types that are arguments, and need no decision.
    const ARGUMENTS: [&str; 28] = [
        "BTreeMap", "BTreeSet", "Box", "HashMap", "HashSet", "Map", "Option", "PathBuf", "String",
        "Value", "Vec", "bool", "char", "f32", "f64", "i128", "i16", "i32", "i64", "i8", "isize",
        "u128", "u16", "u32", "u64", "u8", "usize", "VecDeque",
    ];
    let Some((name, has_parameter)) = last_name(ty) else { return Source::Client };
    let is = |names: &[&str]| names.iter().any(|known| name == known);
    match has_parameter {
        false if is(&EXTRACTORS) => Source::Call,
        true if is(&GENERIC) => Source::Call,
        _ if is(&ARGUMENTS) => Source::Client,
        _ => Source::Unknown,
    }
}

/// The type that decides about a parameter.
fn choice(index: usize) -> Ident {
    Ident::new(&format!("__Parameter{index}"), Span::call_site())
}

/// What the decision makes of the type of a parameter.
fn chosen(index: usize, ty: &Type, what: &str) -> TokenStream {
    let (choice, what) = (choice(index), Ident::new(what, Span::call_site()));
    quote_spanned!(at(ty.span())=> <#choice as ::outlive::__private::Choose<#ty>>::#what)
}

/// What the handler calls the value of a parameter.
fn local(index: usize) -> Ident {
    Ident::new(&format!("__value{index}"), Span::mixed_site())
}

/// What the handler calls that which was made from the call, if it was.
fn extracted(index: usize) -> Ident {
    Ident::new(&format!("__extracted{index}"), Span::mixed_site())
}

/// An extractor. There is nothing to describe about it, so a doc comment is for the reader of the
/// function.
fn extractor(param: &PatType) -> syn::Result<Param> {
    let misplaced = |attribute: &&Attribute| is(attribute, &["header", "schemars", "serde"]);
    match param.attrs.iter().find(misplaced) {
        Some(attribute) => Err(error(
            attribute,
            "this parameter is an extractor, not an argument; remove the attribute",
        )),
        None => Ok(Param::Extractor { written: Box::new(param.clone()) }),
    }
}

fn is(attribute: &Attribute, names: &[&str]) -> bool {
    names.iter().any(|name| attribute.path().is_ident(name))
}

fn has(attributes: &[Attribute], names: &[&str]) -> bool {
    attributes.iter().any(|attribute| is(attribute, names))
}

/// The last name in the path of a type, and whether it has parameters.
fn last_name(ty: &Type) -> Option<(&Ident, bool)> {
    match ty {
        Type::Path(path) => {
            let segment = path.path.segments.last()?;
            Some((&segment.ident, !matches!(segment.arguments, PathArguments::None)))
        }
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
