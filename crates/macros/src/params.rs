//! Parameters of a handler: extractors, and arguments collected in one struct.
//!
//! If the name of a type does not show whether it is an extractor, the generated code lets the
//! compiler decide.

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
    /// Value extracted from the call.
    Extractor { written: Box<PatType> },
    /// All arguments, as a type of the author.
    Args { name: Ident, ty: Box<Type> },
    /// One argument.
    Argument(Box<Field>),
    /// One argument or an extractor, depending on the type.
    ByType { written: Box<PatType>, field: Box<Field> },
}

impl Params {
    pub(crate) fn read(inputs: &Punctuated<FnArg, Token![,]>, errors: &mut Errors) -> Self {
        let mut params = Self::default();
        for input in inputs {
            // `self` has already been reported.
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

    /// Returns the parameters that are one argument each.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.0.iter().filter_map(|param| match param {
            Param::Argument(field) => Some(&**field),
            _ => None,
        })
    }

    /// Returns all parameters that clients fill.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Ident> {
        self.0.iter().filter_map(|param| match param {
            Param::Args { name, .. } => Some(name),
            Param::Argument(field) => Some(field.parameter()),
            Param::Extractor { .. } | Param::ByType { .. } => None,
        })
    }

    /// Turns parameters of unknown type that clients cannot fill into extractors.
    pub(crate) fn decide(&mut self, can_fill: impl Fn(&Field) -> bool) {
        for param in &mut self.0 {
            if let Param::ByType { written, field } = param
                && !can_fill(field)
            {
                *param = Param::Extractor { written: written.clone() };
            }
        }
    }

    /// Generates the struct of the arguments and the type decisions, if any.
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

    /// Returns the parameter types of the handler and their patterns.
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

    /// Returns the expressions that the handler passes to the function.
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

    /// Returns whether all parameters are extractors, so that the function itself is the handler.
    pub(crate) fn are_extractors(&self) -> bool {
        self.0.iter().all(|param| matches!(param, Param::Extractor { .. }))
    }

    /// Returns whether the arguments need a struct.
    fn has_struct(&self) -> bool {
        self.0.iter().any(|param| matches!(param, Param::Argument(_) | Param::ByType { .. }))
    }

    /// Reports a second source of arguments, because arguments are deserialized once, into one
    /// type.
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
                "the arguments are already taken; use one parameter for all arguments or one per argument",
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
            // An argument needs a plain name, so this is an extractor.
            return extractor(param);
        }
        let name = plain_name(&param.pat)?;
        if name.ident == "args" {
            if let Some(attribute) = param.attrs.first() {
                return Err(error(
                    attribute,
                    "`args` takes all arguments; put this attribute on a field of its type",
                ));
            }
            return Ok(Self::Args { name: name.ident, ty });
        }
        let field = Box::new(Field::read(param, name, (*ty).clone())?);
        // Only arguments can have these attributes.
        let is_argument = has(&param.attrs, &["cfg", "header", "schemars", "serde"]);
        Ok(match source == Source::Client || is_argument {
            true => Self::Argument(field),
            false => Self::ByType { written: Box::new(param.clone()), field },
        })
    }
}

/// Source of a value, as far as the name of its type shows.
#[derive(PartialEq, Eq)]
enum Source {
    Call,
    Client,
    Unknown,
}

fn source(ty: &Type) -> Source {
    /// Extractors of Outlive. Other types of these names must be imported under another name.
    const EXTRACTORS: [&str; 4] = ["Cx", "Durable", "Principal", "RawParams"];
    /// Generic extractors of Outlive. The compiler checks their parameter.
    const GENERIC: [&str; 2] = ["Args", "State"];
    /// Types that are always arguments.
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

/// Returns the name of the type that decides about a parameter.
fn choice(index: usize) -> Ident {
    Ident::new(&format!("__Parameter{index}"), Span::call_site())
}

/// Returns an associated item of the decision for a type.
fn chosen(index: usize, ty: &Type, what: &str) -> TokenStream {
    let (choice, what) = (choice(index), Ident::new(what, Span::call_site()));
    quote_spanned!(at(ty.span())=> <#choice as ::outlive::__private::Choose<#ty>>::#what)
}

/// Returns the handler's variable for the value of a parameter.
fn local(index: usize) -> Ident {
    Ident::new(&format!("__value{index}"), Span::mixed_site())
}

/// Returns the handler's variable for the extracted value of a parameter.
fn extracted(index: usize) -> Ident {
    Ident::new(&format!("__extracted{index}"), Span::mixed_site())
}

/// Creates an extractor. Its doc comment is not part of the schema.
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

/// Returns the last name in the path of a type, and whether it has parameters.
fn last_name(ty: &Type) -> Option<(&Ident, bool)> {
    match ty {
        Type::Path(path) => {
            let segment = path.path.segments.last()?;
            Some((&segment.ident, !matches!(segment.arguments, PathArguments::None)))
        }
        // A type from a `macro_rules!` macro is in an invisible group.
        Type::Group(group) => last_name(&group.elem),
        Type::Paren(paren) => last_name(&paren.elem),
        _ => None,
    }
}

fn check_type(ty: &Type) -> syn::Result<()> {
    match ty {
        Type::Reference(_) => {
            Err(error(ty, "arguments must be owned; use `String` for `&str`, `Vec<T>` for `&[T]`"))
        }
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
            "an argument needs a plain name, which clients use; destructure the value in the body",
        )),
    }
}

fn error(place: &impl ToTokens, message: &str) -> syn::Error {
    syn::Error::new_spanned(place, message)
}
