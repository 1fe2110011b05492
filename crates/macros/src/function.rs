//! The function under an attribute: what it must be, and what becomes of it.
//!
//! The author's tokens are put back unchanged wherever possible, so that errors and "go to
//! definition" end in the author's code; the body is not even parsed.

use proc_macro2::{Delimiter, Group, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Attribute, FnArg, Ident, LitStr, Signature, Visibility,
    ext::IdentExt,
    parse::{Parse, ParseStream},
};

use crate::{
    description, errors::Errors, field::Field, params::Params, settings::Settings, span::at,
};

/// A function that can become a handler.
pub(crate) struct Function {
    source: Source,
    /// `None` if the function cannot become a handler.
    params: Option<Params>,
}

impl Function {
    /// Reads the item under the attribute; `None` if it is not even a function.
    pub(crate) fn read(attribute: &str, item: &TokenStream, errors: &mut Errors) -> Option<Self> {
        let source: Source = match syn::parse2(item.clone()) {
            Ok(source) => source,
            Err(error) => {
                let message = format!("`#[{attribute}]` goes on an `async fn`: {error}");
                errors.add(syn::Error::new(error.span(), message));
                return None;
            }
        };
        check(&source.signature, errors);
        let params = Params::read(&source.signature.inputs, errors);
        Some(Self { source, params: errors.is_empty().then_some(params) })
    }

    /// The function's name as a text.
    pub(crate) fn name(&self) -> LitStr {
        let name = &self.source.signature.ident;
        LitStr::new(&name.unraw().to_string(), name.span())
    }

    /// The parameters that are one argument each.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.params.iter().flat_map(Params::fields)
    }

    /// All parameters that clients fill, `args` included.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Ident> {
        self.params.iter().flat_map(Params::arguments)
    }

    /// Only the arguments of tools can be repeated in headers.
    pub(crate) fn refuse_headers(&self, errors: &mut Errors) {
        for header in self.fields().filter_map(|field| field.header.as_ref()) {
            errors.push(
                header,
                "only the arguments of a tool are repeated in headers; remove `#[header]`",
            );
        }
    }

    /// Writes the function that returns a `product`. `arguments` are those of its `new`, less the
    /// handler.
    pub(crate) fn expand(
        &self,
        product: &str,
        arguments: &TokenStream,
        settings: &Settings,
    ) -> TokenStream {
        let Source { attributes, visibility, signature, body } = &self.source;
        let Signature { fn_token, ident, output, .. } = signature;
        let (outside, inside): (Vec<_>, Vec<_>) =
            attributes.iter().partition(|attribute| is_outside(attribute));
        let product = Ident::new(product, at(ident.span()));
        let outer = |content: TokenStream| {
            // With the author's span at both ends, the compiler takes the function for the
            // author's, and says so when it is never used.
            let mut outer_body = Group::new(Delimiter::Brace, content);
            outer_body.set_span(body.span());
            quote! {
                #(#outside)*
                #visibility #fn_token #ident() -> ::outlive::server::#product #outer_body
            }
        };
        let Some(params) = &self.params else {
            return outer(quote!(::core::unreachable!("it does not compile")));
        };
        let described = match settings.described {
            true => None,
            false => description::of(attributes).map(|text| quote!(.description(#text))),
        };
        let calls = &settings.calls;
        let arguments_type = params.arguments_type();
        let parameters = params.parameters();
        let types = params.types();
        let async_token = &signature.asyncness;
        // The types are written out for the sake of errors: if one of them is no extractor, the
        // compiler can say which, instead of that the function is no handler.
        let new = quote_spanned! {at(ident.span())=>
            ::outlive::server::#product::new::<(#(#types,)*), _>(#arguments, #ident)
        };
        outer(quote! {
            #arguments_type
            #(#inside)*
            #async_token #fn_token #ident(#(#parameters),*) #output #body
            #new #described #(#calls)*
        })
    }
}

/// A function as it is written.
struct Source {
    attributes: Vec<Attribute>,
    visibility: Visibility,
    signature: Signature,
    body: Group,
}

impl Parse for Source {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        Ok(Self {
            attributes: input.call(Attribute::parse_outer)?,
            visibility: input.parse()?,
            signature: input.parse()?,
            body: input.parse()?,
        })
    }
}

fn check(signature: &Signature, errors: &mut Errors) {
    let Signature {
        constness, asyncness, safety, abi, fn_token, generics, inputs, variadic, ..
    } = signature;
    if let Some(FnArg::Receiver(receiver)) = inputs.first() {
        errors.push(
            receiver,
            "handlers are free functions: move this one out of the `impl`, and take what it needs of `self` as \
             `State<T>`",
        );
    }
    if asyncness.is_none() {
        errors.push(fn_token, "handlers are async; write `async fn`");
    }
    if !generics.params.is_empty() {
        errors.push(&generics.params, "handlers cannot be generic; name the types");
    } else if let Some(clause) = &generics.where_clause {
        errors.push(clause, "handlers cannot be generic; remove the `where` clause");
    }
    let others = [quote!(#constness), quote!(#safety), quote!(#abi), quote!(#variadic)];
    for word in others.iter().filter(|tokens| !tokens.is_empty()) {
        errors.push(word, "handlers are plain async functions; remove this");
    }
}

/// Whether an attribute is about the function that others see. The rest, such as
/// `#[tracing::instrument]`, is about the one that runs.
fn is_outside(attribute: &Attribute) -> bool {
    const OUTSIDE: [&str; 9] =
        ["allow", "cfg", "deny", "deprecated", "doc", "expect", "forbid", "must_use", "warn"];
    OUTSIDE.iter().any(|name| attribute.path().is_ident(name))
}
