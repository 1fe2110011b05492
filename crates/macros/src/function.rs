//! The function under an attribute, and the type generated next to it.
//!
//! The function stays unchanged and callable. The generated type has the same name and a function
//! that returns the product: `add(1, 2)` and `add::tool()`. The author's tokens keep their spans,
//! so that errors and "go to definition" point at the author's code. The body is not parsed.

use proc_macro2::{Group, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Attribute, FnArg, Ident, LitStr, PatType, Receiver, Signature, Visibility,
    ext::IdentExt,
    parse::{Parse, ParseStream},
};

use crate::{
    description, errors::Errors, field::Field, params::Params, settings::Settings, span::at,
};

/// A function that can be a handler.
pub(crate) struct Function {
    source: Source,
    /// `None` if the function cannot be a handler.
    params: Option<Params>,
}

impl Function {
    /// Parses the item under the attribute. Returns `None` if it is not a function.
    pub(crate) fn read(attribute: &str, item: &TokenStream, errors: &mut Errors) -> Option<Self> {
        let source: Source = match syn::parse2(item.clone()) {
            Ok(source) => source,
            Err(error) => {
                let message = format!("`#[{attribute}]` needs an `async fn`: {error}");
                errors.add(syn::Error::new(error.span(), message));
                return None;
            }
        };
        check(&source.signature, errors);
        let params = Params::read(&source.signature.inputs, errors);
        Some(Self { source, params: errors.is_empty().then_some(params) })
    }

    /// Returns the name of the function.
    pub(crate) fn name(&self) -> LitStr {
        let name = &self.source.signature.ident;
        LitStr::new(&name.unraw().to_string(), name.span())
    }

    /// Returns the parameters that are one argument each.
    pub(crate) fn fields(&self) -> impl Iterator<Item = &Field> {
        self.params.iter().flat_map(Params::fields)
    }

    /// Returns all parameters that clients fill, including `args`.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Ident> {
        self.params.iter().flat_map(Params::arguments)
    }

    /// Reports headers on prompts and resources, because only arguments of tools can be headers.
    pub(crate) fn refuse_headers(&self, errors: &mut Errors) {
        for header in self.fields().filter_map(|field| field.header.as_ref()) {
            errors.push(header, "only arguments of a tool can be headers; remove `#[header]`");
        }
    }

    /// Turns parameters of unknown type that clients cannot fill into extractors.
    pub(crate) fn decide(&mut self, can_fill: impl Fn(&Field) -> bool) {
        if let Some(params) = &mut self.params {
            params.decide(can_fill);
        }
    }

    /// Generates the function and the type that returns a `product`. `arguments` are the arguments
    /// of `new` without the handler.
    pub(crate) fn expand(
        &self,
        product: &Product,
        arguments: &TokenStream,
        settings: &Settings,
    ) -> TokenStream {
        let Some(params) = &self.params else { return self.refused(product) };
        let (attributes, ident) = (&self.source.attributes, &self.source.signature.ident);
        let described = match settings.described {
            true => None,
            false => description::of(attributes).map(|text| quote!(.description(#text))),
        };
        let calls = &settings.calls;
        let arguments_type = params.arguments_type();
        let (types, patterns) = params.handler();
        let built = Ident::new(product.built, at(ident.span()));
        let handler = match params.are_extractors() {
            true => quote!(#ident),
            false => {
                let values = params.values();
                quote_spanned!(at(ident.span())=> |#(#patterns: #types),*| #ident(#(#values),*))
            }
        };
        // Explicit types improve the compiler's errors: the compiler names the type that is not an
        // extractor, not only the function.
        let new = quote_spanned! {at(ident.span())=>
            ::outlive::server::#built::new::<(#(#types,)*), _>(#arguments, #handler)
        };
        let beside = self.beside(
            product,
            &quote! {
                #arguments_type
                #new #described #(#calls)*
            },
        );
        let callable = self.callable();
        quote!(#callable #beside)
    }

    /// Generates the function without the attributes that describe arguments.
    fn callable(&self) -> TokenStream {
        /// Attributes that Rust allows on parameters.
        const OF_RUST: [&str; 6] = ["allow", "cfg", "deny", "expect", "forbid", "warn"];
        let Source { attributes, visibility, signature, body } = &self.source;
        let mut signature = signature.clone();
        for input in &mut signature.inputs {
            let (FnArg::Typed(PatType { attrs, .. }) | FnArg::Receiver(Receiver { attrs, .. })) =
                input;
            attrs.retain(|attribute| OF_RUST.iter().any(|name| attribute.path().is_ident(name)));
        }
        let about_arguments = self.about_arguments();
        // A tool may have more arguments than clippy allows for functions that are called directly.
        let allow =
            (signature.inputs.len() > 7).then(|| quote!(#[allow(clippy::too_many_arguments)]));
        quote!(#(#attributes)* #about_arguments #allow #visibility #signature #body)
    }

    /// Generates the documentation of the arguments.
    fn about_arguments(&self) -> Option<TokenStream> {
        let lines: Vec<String> = self.fields().filter_map(Field::documentation).collect();
        let text = format!("\n# Arguments\n\n{}", lines.join("\n"));
        (!lines.is_empty()).then(|| quote!(#[doc = #text]))
    }

    /// Generates the type next to the function.
    fn beside(&self, product: &Product, content: &TokenStream) -> TokenStream {
        let Source { attributes, visibility, signature, .. } = &self.source;
        let ident = &signature.ident;
        let conditions: Vec<_> =
            attributes.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
        let Product { built, function, doc } = product;
        let (built, function) =
            (Ident::new(built, at(ident.span())), Ident::new(function, at(ident.span())));
        let name = ident.unraw().to_string();
        let type_doc = format!("{doc} of the function [`{name}`](fn@{name}).");
        let function_doc =
            format!("Returns the {}, for the builder of a server.", doc.to_lowercase());
        quote_spanned! {at(ident.span())=>
            #(#conditions)*
            #[doc = #type_doc]
            #[allow(non_camel_case_types)]
            #[derive(Debug)]
            #[non_exhaustive]
            #visibility enum #ident {}
            #(#conditions)*
            #[allow(deprecated)]
            impl #ident {
                #[doc = #function_doc]
                #visibility fn #function() -> ::outlive::server::#built { #content }
            }
        }
    }

    /// Generates a stub, so that one mistake does not cause errors wherever the function is used.
    fn refused(&self, product: &Product) -> TokenStream {
        let beside = match self.source.signature.inputs.first() {
            // An `impl` block cannot contain a type.
            Some(FnArg::Receiver(_)) => None,
            _ => Some(self.beside(
                product,
                &quote!(::core::unreachable!("the attribute reports a compile error")),
            )),
        };
        let callable = self.callable();
        quote!(#callable #beside)
    }
}

/// Product of an attribute.
pub(crate) struct Product {
    /// Type in the module `server`.
    pub(crate) built: &'static str,
    /// Name of the generated function that returns the product.
    pub(crate) function: &'static str,
    /// Name of the product in documentation.
    pub(crate) doc: &'static str,
}

/// A function as the author wrote it.
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
